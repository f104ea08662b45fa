"""The devices of the stub; see the table in __init__.py."""

import os

import torch

_waits = 0


def is_available():
    if torch.shaped('abort-available'):
        os.abort()
    if torch.shaped('hang-device'):
        torch.hang()
    if torch.shaped('raise-available'):
        raise RuntimeError('CUDA unknown error')
    return device_count() > 0


def device_count():
    if torch.shaped('no-device') or torch.shaped('no-device-code') or torch.shaped('mig'):
        return 0
    return int(os.environ.get('KD_STUB_DEVICES', '1'))


def get_arch_list():
    return ['gfx90a', 'gfx1100'] if torch.version.hip else ['sm_50', 'sm_80', 'sm_90', 'compute_90']


def get_device_capability(device):
    return (3, 7) if torch.shaped('no-kernel') else (8, 6)


class _Properties(object):
    gcnArchName = 'gfx1201:sramecc-:xnack-'


def get_device_properties(device):
    return _Properties()


def allocate(device):
    """Called by torch.tensor for each one on the GPU."""
    if torch.shaped('cpu-build'):
        raise AssertionError('Torch not compiled with CUDA enabled')
    if torch.shaped('no-device') or torch.shaped('raise-available'):
        raise RuntimeError('No CUDA GPUs are available')
    if torch.shaped('no-device-code'):
        raise torch.AcceleratorError('CUDA error: no CUDA-capable device is detected', 100)
    if torch.shaped('oom', device):
        raise torch.OutOfMemoryError('CUDA out of memory. Tried to allocate 2.00 MiB')
    if torch.shaped('oom-code', device):
        raise torch.AcceleratorError('CUDA error: out of memory', 2)
    if torch.shaped('oom-text', device):
        raise RuntimeError('CUDA error: out of memory')
    if torch.shaped('ecc', device):
        raise torch.AcceleratorError('CUDA error: uncorrectable ECC error encountered', 214)


def synchronize(device=None):
    global _waits
    _waits += 1
    if torch.shaped('hang-sync', device):
        torch.hang()
    if torch.shaped('exit-sync', device):
        os._exit(0)
    if torch.shaped('sync-error', device) or torch.shaped('sync-error-late', device) and _waits % 2 == 0:
        raise RuntimeError('CUDA error: an illegal memory access was encountered')
