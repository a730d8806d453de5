"""What a person gets of a finding: report, folder, picture, stand-alone reproducer. It imports
examination and simulators; it searches for nothing.
"""
