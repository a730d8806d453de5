"""Kernels in files of users: read from their source, never imported here. It imports domain and
dialects; nothing of a user's file is executed in this process.
"""
