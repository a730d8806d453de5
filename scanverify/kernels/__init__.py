"""The bundled kernels, one file an algorithm; each module lists its kernels in ``KERNELS``."""
