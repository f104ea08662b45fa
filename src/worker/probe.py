"""The Python worker: does this interpreter import PyTorch, and does PyTorch compute on the device that is asked for?

Started as  PYTHON [FLAG]... -B -c SOURCE KEY=VALUE...  inside the sandbox. It speaks the protocol of src/result.h on
the descriptor `result` and on nothing else; what foreign code prints or closes does not matter. Arguments:

    result=FD        where the lines go
    go=FD            one byte is read from it before the GPU is touched; its end means that nobody waits any more
    device=gpu|cpu   cpu never calls into torch.cuda
    index=N|all      the device, or each in turn
    expect=N         so many devices must be visible (optional)
    path0=DIR        what the workload would find in sys.path[0] in place of the '' that -c puts there (optional)
    path0_always=DIR the same, where the interpreter adds it under -I and -P too: a folder or zip file as the program

Until torch is imported, only modules that are part of every interpreter are touched (sys, posix): a random.py beside
the workload must break here exactly what it breaks there, and nothing earlier. Numbers are sent, not judged. Python 3.8
to 3.14; nothing in the syntax keeps an older one from saying what it finds.
"""

import posix
import sys

# What a foreign import could replace is bound before it.
_write, _exit, _fstat, _read = posix.write, posix._exit, posix.fstat, posix.read

# How much of a value the reader keeps (src/result.h).
LIMITS = {'libc': 31, 'call': 63, 'error_name': 63, 'missing': 95, 'python_version': 31, 'python_implementation': 31,
          'torch_version': 63, 'torch_cuda': 31, 'torch_hip': 63, 'torch_arch_list': 255}

A = [[1.0, 2.0], [3.0, 4.0]]
B = [[2.0, 0.0], [1.0, 2.0]]

NOT_A_NUMBER = float('nan')
INFINITY_BITS = '7f800000'
MEMORY_ALLOCATION = 2    # cudaErrorMemoryAllocation, hipErrorOutOfMemory
DEVICES_UNAVAILABLE = 46  # cudaErrorDevicesUnavailable: held by another process, exclusive mode
NO_KERNEL_IMAGE = 209    # cudaErrorNoKernelImageForDevice, hipErrorNoBinaryForGpu


class Channel(object):
    """The result descriptor. A number that now names another file is not written to."""

    def __init__(self, fd):
        self.fd = fd
        self.identity = self.identify()

    def identify(self):
        try:
            status = _fstat(self.fd)
        except OSError:
            _exit(1)
        return status.st_dev, status.st_ino

    def send(self, line):
        data = line.encode('ascii')
        if self.identify() != self.identity:
            _exit(1)
        while data:
            try:
                data = data[_write(self.fd, data):]
            except OSError:
                _exit(1)


channel = None


def clean(value, limit):
    try:
        text = str(value)
    except BaseException:
        text = '?'
    return ''.join([c if ' ' <= c <= '~' else '?' for c in text]).strip()[:limit].strip()


def say(key, value):
    text = clean(value, LIMITS.get(key, 127))
    if text:
        channel.send('%s %s\n' % (key, text))


def stop(ended):
    say('end', ended)
    _exit(0)


def fail(code, call=None, error=None, missing=None, hints=()):
    """Tells a failure of the current stage and ends the process."""
    say('fail', code)
    if call:
        say('call', call)
    if error is not None:
        say('error_name', type(error).__name__)
        number = error_code(error)
        if number is not None:
            say('error_number', number)
    if missing:
        say('missing', missing)
    for hint in hints:
        say('hint', hint)
    stop('fail')


# --- the interpreter, and the sandbox as it is felt from inside ---------------------------------------------------


def read_file(path):
    fd = posix.open(path, posix.O_RDONLY)
    data = b''
    try:
        piece = _read(fd, 4096)
        while piece:
            data += piece
            piece = _read(fd, 4096)
    finally:
        posix.close(fd)
    return data


def measure_sandbox():
    try:
        lines = read_file('/proc/self/status').split(b'\n')
    except OSError:
        return
    for line in lines:
        key, _, value = line.partition(b':')
        if key == b'NoNewPrivs':
            say('no_new_privs', int(value.strip() == b'1'))
        elif key == b'Seccomp':
            say('seccomp', int(value.strip() == b'2'))


def measure_writes():
    """A forbidden act that harms nothing: opening the name of this very process for writing, as its owner may."""
    path = '/proc/self/comm'
    try:
        if posix.stat(path).st_uid != posix.geteuid():
            return  # not dumpable: a refusal would say nothing about the sandbox
        posix.close(posix.open(path, posix.O_WRONLY))
    except OSError as error:
        if error.errno in (1, 13):  # EPERM, EACCES
            say('writes_confined', 1)
        return
    say('writes_confined', 0)


def tell_interpreter():
    say('python_version', sys.version.split()[0])
    say('python_implementation', getattr(getattr(sys, 'implementation', None), 'name', 'cpython'))
    try:
        libc = posix.confstr('CS_GNU_LIBC_VERSION')
    except (AttributeError, OSError, ValueError):
        libc = None  # musl knows no such name
    if libc:
        say('libc', libc)
    measure_sandbox()
    measure_writes()


def place_path0(options):
    """sys.path[0] as the workload would find it. -c put '' there, but not under -I, -P or PYTHONSAFEPATH."""
    safe = bool(sys.flags.isolated or getattr(sys.flags, 'safe_path', False))
    entry = options.get('path0_always')
    if entry is None:
        entry = None if safe else options.get('path0')
    if entry is None:
        return
    if not safe and sys.path and sys.path[0] == '':
        sys.path[0] = entry
    else:
        sys.path.insert(0, entry)


# --- the import ------------------------------------------------------------------------------------------------------


def find_module(name, path):
    """What the import system finds for a top-level name. A finder that raises has its reasons: found."""
    for finder in list(sys.meta_path):
        find = getattr(finder, 'find_spec', None)
        try:
            spec = find(name, path) if find else None
        except BaseException:
            return True
        if spec is not None:
            return spec
    return None


def after(text, marker):
    """The word that follows the marker in text, or None."""
    _, found, rest = text.partition(marker)
    return rest.split()[0].strip(",:'`\"") if found and rest.split() else None


def missing_in_loader_text(text):
    """The dynamic loader gives no number and no field, only a sentence (dlerror); Python never sets LC_MESSAGES, so it
    is the untranslated one. First musl's two, then glibc's. A file loses its folder, so that no path is told."""
    if text.startswith('Error relocating '):
        return text.split(': ')[1] if text.endswith(': symbol not found') else None
    name = after(text, 'Error loading shared library ')
    if name:
        return name.rpartition('/')[2]
    for marker in (': undefined symbol: ', ': symbol ', ': version `'):
        name = after(text, marker)
        if name:
            return name
    name, found, _ = text.partition(': cannot open shared object file')
    return name.rpartition('/')[2] if found and '.so' in name else None


def missing_in(error):
    if isinstance(error, ImportError) and type(error).__name__ == 'ModuleNotFoundError':
        return error.name
    if isinstance(error, (ImportError, OSError)) and len(error.args) == 1 and isinstance(error.args[0], str):
        return missing_in_loader_text(error.args[0])
    return None


def find_missing(error):
    """The missing module, object or symbol behind an error, or behind the one that it was raised from."""
    for _ in range(8):
        if error is None:
            return None
        name = missing_in(error)
        if name:
            return name
        cause = getattr(error, '__cause__', None)
        error = cause if cause is not None else getattr(error, '__context__', None)
    return None


def absolute(path):
    return path if path.startswith('/') else posix.getcwd() + '/' + path


def path0_files(trace):
    """Files that the import has run or loaded."""
    while trace is not None:
        yield trace.tb_frame.f_code.co_filename
        trace = trace.tb_next
    for module in list(sys.modules.values()):
        yield getattr(module, '__file__', None)


def find_shadow(trace):
    """The name of a module in sys.path[0] that hides one of the same name further down, and took part in the import."""
    folder = absolute(sys.path[0]).rstrip('/') + '/'
    names = set()
    for path in path0_files(trace):
        if isinstance(path, str) and not path.startswith('<') and absolute(path).startswith(folder):
            names.add(absolute(path)[len(folder):].split('/')[0].split('.')[0])
    for name in sorted(names):
        spec = find_module(name, sys.path[1:])
        if spec is not None and getattr(spec, 'origin', None):
            return name
    return None


def threads_are_refused():
    try:
        import _thread
        _thread.start_new_thread(int, ())
    except ImportError:
        return False
    except BaseException:
        return True
    return False


def import_failed(error, trace):
    missing = find_missing(error)
    if missing == 'torch' and find_module('torch', None) is None:
        fail('TORCH_MISSING', 'import torch', error, missing)
    hints = []
    try:
        shadow = find_shadow(trace)
    except BaseException:
        shadow = None
    if shadow:
        hints.append('module-shadowed')
    elif not missing and threads_are_refused():
        hints.append('threads-refused')
    fail('TORCH_IMPORT_FAILED', 'import %s' % (shadow or 'torch'), error, missing, hints)


def is_pytorch(torch):
    try:
        return all(hasattr(torch, name) for name in ('__version__', 'version', 'tensor', 'matmul', 'float32', 'device'))
    except BaseException:
        return False


def import_torch():
    try:
        import torch
    except BaseException:
        _, error, trace = sys.exc_info()
        import_failed(error, trace)
    if not is_pytorch(torch):
        empty = getattr(torch, '__file__', None) is None
        fail('TORCH_IMPORT_FAILED', 'import torch', hints=['torch-is-namespace' if empty else 'torch-is-foreign'])
    return torch


def tell_torch(torch):
    cuda, hip = getattr(torch.version, 'cuda', None), getattr(torch.version, 'hip', None)
    backend = 'hip' if hip else 'cuda' if cuda else 'none'
    say('torch_version', torch.__version__)
    if cuda:
        say('torch_cuda', cuda)
    if hip:
        say('torch_hip', hip)
    say('torch_backend', backend)
    return backend


# --- the device ------------------------------------------------------------------------------------------------------


def error_code(error):
    """The driver's number, where PyTorch hands it out (torch.AcceleratorError, 2.8 and later)."""
    number = getattr(error, 'error_code', None)
    return number if isinstance(number, int) and not isinstance(number, bool) else None


def is_out_of_memory(error):
    """By class, or by number. PyTorch before 1.13, and a context that finds no memory before 2.8, raise a bare
    RuntimeError whose text alone tells: that stays RUNTIME_ERROR, and the native worker has the driver's own name."""
    names = [kind.__name__ for kind in type(error).__mro__]
    return 'OutOfMemoryError' in names or 'MemoryError' in names or error_code(error) == MEMORY_ALLOCATION


def architecture_is_covered(torch, index):
    """Does the package hold code for this device: for it, for an older minor of its major, or PTX to compile?"""
    listed = torch.cuda.get_arch_list()
    if getattr(torch.version, 'hip', None):
        return torch.cuda.get_device_properties(index).gcnArchName.split(':')[0] in [a.split(':')[0] for a in listed]
    major, minor = torch.cuda.get_device_capability(index)
    for name in listed:
        kind, _, digits = name.partition('_')
        digits = digits.rstrip('abcdefghijklmnopqrstuvwxyz')
        if not digits.isdigit():
            return True
        have = divmod(int(digits), 10)
        if kind == 'compute' and have <= (major, minor) or have[0] == major and have[1] <= minor:
            return True
    return not listed


class Run(object):
    """The fixed computation of the contract on one device."""

    def __init__(self, torch, device, index):
        self.torch, self.device, self.index = torch, device, index
        self.during = None

    def attempt(self, call, function, *arguments):
        try:
            return function(*arguments)
        except BaseException:
            self.failed(call, sys.exc_info()[1])

    def failed(self, call, error):
        hints = []
        if self.index is not None and not is_out_of_memory(error):
            try:
                covered = error_code(error) != NO_KERNEL_IMAGE and architecture_is_covered(self.torch, self.index)
            except BaseException:
                covered = True
            if not covered:
                hints.append('wheel-lacks-architecture')
        if self.during:
            say('during', self.during)
        if error_code(error) == DEVICES_UNAVAILABLE:
            fail('GPU_UNAVAILABLE', call, error, hints=['exclusive-mode'])
        fail('OUT_OF_MEMORY' if is_out_of_memory(error) else 'RUNTIME_ERROR', call, error, hints=hints)

    def make(self, rows, requires_grad):
        return self.torch.tensor(rows, dtype=self.torch.float32, device=self.device, requires_grad=requires_grad)

    def synchronize(self, during):
        """Kernels report late: waiting after each step keeps an error with the step that caused it."""
        say('stage', 'synchronization')
        self.during = during
        if self.index is not None:
            self.attempt('torch.cuda.synchronize', self.torch.cuda.synchronize, self.device)

    def send(self, key, tensor, count):
        values = self.attempt('Tensor.tolist', lambda: None if tensor is None else tensor.tolist())
        self.attempt('struct.pack', lambda: say(key, bits(values, count)))

    def run(self):
        say('computed', 'cpu' if self.index is None else self.index)
        say('stage', 'allocation')
        a = self.attempt('torch.tensor', self.make, A, True)
        b = self.attempt('torch.tensor', self.make, B, False)
        say('stage', 'product')
        c = self.attempt('torch.matmul', self.torch.matmul, a, b)
        self.synchronize('product')
        self.send('product', c, 4)
        self.during = None
        say('stage', 'gradient')
        loss = self.attempt('torch.sum', lambda: (c * c).sum())
        self.attempt('Tensor.backward', lambda: loss.backward())
        self.synchronize('gradient')
        self.send('loss', loss, 1)
        self.send('gradient', a.grad, 4)


def flatten(value):
    if not isinstance(value, (list, tuple)):
        return [value]
    return [number for part in value for number in flatten(part)]


def bits(values, count):
    """float32 bits of exactly `count` numbers; what is missing (no gradient, another shape) is not a number."""
    from struct import pack, unpack  # torch has long imported it
    numbers = [] if values is None else flatten(values)
    if len(numbers) != count:
        numbers = [NOT_A_NUMBER] * count
    words = []
    for number in numbers:
        try:
            words.append('%08x' % unpack('<I', pack('<f', number)))
        except OverflowError:
            words.append(INFINITY_BITS)
    return ' '.join(words)


def count_devices(torch):
    """(what is_available says, what device_count says, the error of either)"""
    try:
        return bool(torch.cuda.is_available()), int(torch.cuda.device_count()), None
    except BaseException:
        return False, 0, sys.exc_info()[1]


def confirm_absence(torch):
    """Under MIG an older PyTorch counted 0 devices and computed all the same (pytorch issue 95784): try one."""
    try:
        torch.tensor([1.0], dtype=torch.float32, device=torch.device('cuda', 0))
    except BaseException:
        return sys.exc_info()[1]
    return None


def visible_devices(torch):
    available, count, error = count_devices(torch)
    absence = confirm_absence(torch) if count <= 0 else None
    if count <= 0 and absence is None:
        available, count, error = count_devices(torch)
    say('torch_gpu_available', int(available))
    say('torch_device_count', max(count, 0))
    if absence is None:
        return max(count, 1)
    if is_out_of_memory(absence):
        say('stage', 'allocation')
        fail('OUT_OF_MEMORY', 'torch.tensor', absence)
    if error is not None:
        fail('GPU_UNAVAILABLE', 'torch.cuda.is_available', error)
    fail('GPU_UNAVAILABLE', 'torch.tensor', absence)


def tell_architectures(torch):
    try:
        text = ','.join(torch.cuda.get_arch_list())
    except BaseException:
        return
    while len(text) > LIMITS['torch_arch_list']:
        text = text.rpartition(',')[0]
    say('torch_arch_list', text)


def wait_turn(options):
    if 'go' not in options:
        return
    say('wait', 'turn')
    if not _read(int(options['go']), 1):
        _exit(0)


def check_gpu(torch, options, backend):
    say('stage', 'backend')
    if backend == 'none':
        fail('GPU_BACKEND_ABSENT')
    wait_turn(options)
    say('stage', 'device')
    count = visible_devices(torch)
    tell_architectures(torch)
    if 'expect' in options and int(options['expect']) != count:
        fail('DEVICE_INDEX_INVALID')
    if options.get('index') == 'all':
        indices = range(count)
    elif int(options.get('index', 0)) >= count:
        fail('DEVICE_INDEX_INVALID')
    else:
        indices = [int(options.get('index', 0))]
    for index in indices:
        Run(torch, torch.device('cuda', index), index).run()


def main():
    global channel
    options = dict(word.split('=', 1) for word in sys.argv[1:])
    sys.argv[1:] = []
    channel = Channel(int(options['result']))
    say('stage', 'interpreter')
    tell_interpreter()
    place_path0(options)
    say('stage', 'import')
    torch = import_torch()
    backend = tell_torch(torch)
    if options.get('device') == 'cpu':
        Run(torch, torch.device('cpu'), None).run()
    else:
        check_gpu(torch, options, backend)
    stop('pass')


main()
