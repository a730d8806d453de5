"""The bundled kernels for hw-native-sys PyPTO, one form a file. They import domain and dialect."""
