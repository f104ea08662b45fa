"""A stub of PyTorch for tests without a GPU: it computes 2x2 float32 products and their gradients in plain Python, for
the calls that src/worker/probe.py makes, and can be told to fail in the ways of the field. Put tests/stubs on PYTHONPATH.

KD_STUB         words, separated by commas, of the table; none: a CUDA build that works
KD_STUB_DEVICES number of devices (1)
KD_STUB_ONLY    the words marked * concern this device index only

    word              what happens                                                        a preflight says
    ----------------  ------------------------------------------------------------------  -----------------------------
    at import
    sigill            kills itself with SIGILL (a CPU without AVX)                        WORKER_FAILED, import
    abort-import      SIGABRT                                                             WORKER_FAILED, import
    hang-import       sleeps for ever, SIGTERM ignored                                    TIMEOUT, import
    exit-import       os._exit(0) without a word                                          WORKER_FAILED, import
    system-exit       raises SystemExit(0)                                                TORCH_IMPORT_FAILED
    raise-import      raises RuntimeError                                                 TORCH_IMPORT_FAILED
    missing-so        loads a library that is not there (OSError)                         TORCH_IMPORT_FAILED
    wrapped-so        the same, re-raised as ValueError                                   TORCH_IMPORT_FAILED
    undefined-symbol  ImportError with the loader's sentence for a missing symbol         TORCH_IMPORT_FAILED
    missing-version   ImportError with the loader's sentence for a missing GLIBC version  TORCH_IMPORT_FAILED
    musl-so           ImportError with musl's sentence for a missing library              TORCH_IMPORT_FAILED
    musl-symbol       ImportError with musl's sentence for a missing symbol               TORCH_IMPORT_FAILED
    missing-module    imports a dependency that is not installed                          TORCH_IMPORT_FAILED
    missing-self      imports a part of torch that is not there                           TORCH_IMPORT_FAILED
    no-threads        threads are refused and the import says RuntimeError                TORCH_IMPORT_FAILED
    traceback         prints a traceback and goes on (NumPy 1 against 2)                  a pass
    prints            floods stdout and stderr                                            a pass
    close-fds         closes descriptors 1 and 3                                          a pass
    garbage           writes to every open descriptor                                     WORKER_FAILED (malformed)
    close-all         closes every descriptor                                             WORKER_FAILED
    reopen-all        puts another file under every descriptor                            WORKER_FAILED
    build
    cpu-build         neither CUDA nor HIP                                                GPU_BACKEND_ABSENT
    hip               a ROCm build                                                        a pass
    device
    abort-available   is_available() aborts (ROCm, a chip without code)                   WORKER_FAILED, device
    hang-device       is_available() never returns                                        TIMEOUT, device
    raise-available   is_available() raises                                               GPU_UNAVAILABLE
    no-device         no device: count 0, allocation refused                              GPU_UNAVAILABLE
    no-device-code    the same with the driver's number 100                               GPU_UNAVAILABLE
    mig               count 0, and everything works (an older torch under MIG)            a pass
    allocation *
    oom               OutOfMemoryError                                                    OUT_OF_MEMORY, allocation
    oom-code          AcceleratorError, number 2                                          OUT_OF_MEMORY, allocation
    oom-text          RuntimeError whose text alone says it (older versions)              RUNTIME_ERROR, allocation
    ecc               AcceleratorError, number 214                                        RUNTIME_ERROR, allocation
    product *
    no-kernel         the wheel has no code for the card: RuntimeError                    RUNTIME_ERROR, product
    runtime-error     RuntimeError                                                        RUNTIME_ERROR, product
    crash             SIGSEGV                                                             WORKER_FAILED, product
    hang-product      never returns                                                       TIMEOUT, product
    zeros             the product is all zeros, no error                                  CHECK_FAILED, product
    nan               the product is all NaN                                              CHECK_FAILED, product
    shape             the product has three numbers                                       CHECK_FAILED, product
    gradient *
    wrong-loss        the loss is off by one                                              CHECK_FAILED, gradient
    wrong-gradient    one number of the gradient is off by the last bit                   CHECK_FAILED, gradient
    no-gradient       no gradient is left behind                                          CHECK_FAILED, gradient
    backward-error    backward() raises                                                   RUNTIME_ERROR, gradient
    synchronization *
    sync-error        synchronize() raises, while the product is pending                  RUNTIME_ERROR, synchronization
    sync-error-late   synchronize() raises, while the gradient is pending                 RUNTIME_ERROR, synchronization
    hang-sync         synchronize() never returns                                         TIMEOUT, synchronization
    exit-sync         os._exit(0) without a word                                          WORKER_FAILED, synchronization
"""

import os
import random  # as the real one does: a random.py beside the workload breaks this import
import struct

random.Random(0)


def shaped(word, device=None):
    """Is this word of KD_STUB set (and meant for this device)?"""
    only = os.environ.get('KD_STUB_ONLY', '')
    return word in os.environ.get('KD_STUB', '').split(',') and (device is None or only in ('', str(device.index)))


def hang():
    import signal
    import time
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    while True:
        time.sleep(3600)


def _at_import():
    import signal
    import sys
    if shaped('sigill'):
        os.kill(os.getpid(), signal.SIGILL)
    if shaped('abort-import'):
        os.abort()
    if shaped('hang-import'):
        hang()
    if shaped('exit-import'):
        os._exit(0)
    if shaped('system-exit'):
        raise SystemExit(0)
    if shaped('raise-import'):
        raise RuntimeError('a stub that does not import')
    if shaped('missing-so') or shaped('wrapped-so'):
        import ctypes
        try:
            ctypes.CDLL('libcudnn_of_the_stub.so.9')
        except OSError:
            if shaped('missing-so'):
                raise
            raise ValueError('not in the system path')
    if shaped('undefined-symbol'):
        raise ImportError('/srv/secret/lib/libtorch_cuda.so: undefined symbol: _ZN3c104cuda3getEv, version libcudart.so.12')
    if shaped('missing-version'):
        raise ImportError("/lib/libc.so.6: version `GLIBC_2.99' not found (required by /srv/secret/libtorch.so)")
    if shaped('musl-so'):
        raise ImportError('Error loading shared library libgomp.so.1: No such file or directory '
                          '(needed by /srv/secret/libtorch.so)')
    if shaped('musl-symbol'):
        raise ImportError('Error relocating /srv/secret/libtorch.so: __strdup: symbol not found')
    if shaped('missing-module'):
        import a_dependency_of_the_stub  # noqa: F401
    if shaped('missing-self'):
        import torch._C  # noqa: F401
    if shaped('no-threads'):
        import _thread

        def refuse(*_):
            raise RuntimeError("can't start new thread")
        _thread.start_new_thread = refuse
        refuse()
    if shaped('traceback'):
        sys.stderr.write('Traceback (most recent call last):\n  File "/srv/x.py", line 1\nImportError: numpy\n')
    if shaped('prints'):
        for descriptor in (1, 2):
            os.write(descriptor, b'stage complete\nend pass\n' * 2000)
    if shaped('close-fds'):
        for descriptor in (1, 3):
            try:
                os.close(descriptor)
            except OSError:
                pass
    if shaped('garbage') or shaped('close-all') or shaped('reopen-all'):
        _every_descriptor()


def _every_descriptor():
    null = os.open('/dev/null', os.O_RDWR)
    for descriptor in range(4096):
        try:
            if shaped('garbage'):
                os.write(descriptor, b'garbage without a meaning\n')
            elif shaped('close-all'):
                os.close(descriptor)
            elif descriptor != null:
                os.fstat(descriptor)
                os.dup2(null, descriptor)
        except OSError:
            pass


_at_import()

__version__ = '2.99.0+stub'
float32 = 'float32'


class OutOfMemoryError(RuntimeError):
    pass


class AcceleratorError(RuntimeError):
    def __init__(self, text, number):
        RuntimeError.__init__(self, text)
        self.error_code = number


class device(object):
    def __init__(self, kind, index=None):
        self.type, self.index = kind, index


def _round(value):
    return struct.unpack('<f', struct.pack('<f', value))[0]


def _each(function, *values):
    if isinstance(values[0], list):
        return [_each(function, *parts) for parts in zip(*values)]
    return _round(function(*values))


def _product(a, b):
    return [[_sum([_round(x * row[j]) for x, row in zip(line, b)]) for j in range(len(b[0]))] for line in a]


def _sum(values):
    total = 0.0
    for value in values:
        total = _round(total + (_sum(value) if isinstance(value, list) else value))
    return total


def _turned(matrix):
    return [list(column) for column in zip(*matrix)]


class Tensor(object):
    def __init__(self, data, where, requires_grad=False, parents=(), back=None):
        self.data, self.device, self.requires_grad = data, where, requires_grad
        self.parents, self.back, self.grad = parents, back, None

    def __mul__(self, other):
        return Tensor(_each(lambda x, y: x * y, self.data, other.data), self.device, parents=(self, other),
                      back=lambda g: (_each(lambda x, y: x * y, g, other.data), _each(lambda x, y: x * y, g, self.data)))

    def sum(self):
        total = _sum(self.data) + (1.0 if shaped('wrong-loss', self.device) else 0.0)
        return Tensor(total, self.device, parents=(self,), back=lambda g: (_each(lambda _: g, self.data),))

    def tolist(self):
        return self.data

    def _order(self, seen):
        if self not in seen:
            for parent in self.parents:
                parent._order(seen)
            seen.append(self)
        return seen

    def backward(self):
        if shaped('backward-error', self.device):
            raise RuntimeError('CUDA error: an illegal memory access was encountered')
        pending = {id(self): 1.0}
        for tensor in reversed(self._order([])):
            gradient = pending.pop(id(tensor))
            if tensor.back:
                for parent, part in zip(tensor.parents, tensor.back(gradient)):
                    have = pending.get(id(parent))
                    pending[id(parent)] = part if have is None else _each(lambda x, y: x + y, have, part)
            if tensor.requires_grad and not shaped('no-gradient', self.device):
                tensor.grad = Tensor(_bent(gradient, self.device), self.device)


def _bent(gradient, where):
    if not shaped('wrong-gradient', where):
        return gradient
    return [gradient[0], [gradient[1][0], struct.unpack('<f', struct.pack('<I', 0x42500001))[0]]]


def tensor(data, dtype=None, device=None, requires_grad=False):
    if device.type == 'cuda':
        cuda.allocate(device)
    return Tensor(data, device, requires_grad)


def matmul(a, b):
    where = a.device
    if shaped('no-kernel', where):
        raise RuntimeError('CUDA error: no kernel image is available for execution on the device')
    if shaped('runtime-error', where):
        raise RuntimeError('CUDA error: CUBLAS_STATUS_NOT_INITIALIZED when calling `cublasCreate(handle)`')
    if shaped('crash', where):
        import signal
        os.kill(os.getpid(), signal.SIGSEGV)
    if shaped('hang-product', where):
        hang()
    data = _product(a.data, b.data)
    if shaped('zeros', where):
        data = [[0.0, 0.0], [0.0, 0.0]]
    if shaped('nan', where):
        data = [[float('nan')] * 2] * 2
    if shaped('shape', where):
        data = [[4.0, 4.0, 10.0]]
    return Tensor(data, where, parents=(a, b),
                  back=lambda g: (_product(g, _turned(b.data)), _product(_turned(a.data), g)))


from torch import cuda, version  # noqa: E402,F401
