# check: --computes rows --dtypes fp32
import pypto

tile = 16

def build(rows=32, cols=64, dtype=pypto.DT_FP32):
    def outer(vec=(16, 64)):
        @pypto.frontend.jit(runtime_options={"run_mode": pypto.RunMode.NPU})
        def scan(a: pypto.Tensor([rows, cols], dtype), b: pypto.Tensor([rows, cols], dtype)):
            pypto.set_vec_tile_shapes(*vec)
            b[:] = pypto.cumsum(a, 1)
        return scan
    return outer
