"""hw-native-sys PyPTO in an interpreter of its own: simulator, runner, and what it lacks."""
