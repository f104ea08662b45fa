"""The workload of Containerfile.pytorch: rung 4 of the ladder, a small input of the application, in a loop.

As PID 1 a program gets no default signal actions: without the handler, `docker stop` would wait its ten seconds and kill.
"""
import argparse
import signal
import sys

import torch


def stop(number, _):
    print('train: stopped by signal %d' % number, flush=True)
    sys.exit(128 + number)


def step(device):
    weight = torch.tensor([[1.0, 2.0], [3.0, 4.0]], dtype=torch.float32, device=device, requires_grad=True)
    sample = torch.tensor([[2.0, 0.0], [1.0, 2.0]], dtype=torch.float32, device=device)
    out = torch.matmul(weight, sample)
    loss = (out * out).sum()
    loss.backward()
    torch.cuda.synchronize(device)
    return float(loss.tolist())


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('--steps', type=int, default=100, help='0: until stopped')
    steps = parser.parse_args().steps
    signal.signal(signal.SIGTERM, stop)
    device = torch.device('cuda', 0)
    done = 0
    while done < steps or steps == 0:
        loss = step(device)
        if done == 0:
            print('train: first step done, loss %g' % loss, flush=True)
        done += 1
    print('train: %d steps done' % done, flush=True)


if __name__ == '__main__':
    main()
