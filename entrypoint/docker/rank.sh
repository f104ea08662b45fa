#!/bin/sh
# rank.sh SCRIPT [ARG...]: one rank behind torchrun: the check of the very card of this rank, then the script.
#
#     torchrun --standalone --nproc-per-node=gpu --no-python rank.sh /app/train.py
#
# A rank whose check fails ends with that code, and torchrun then stops the others. Exit status: the check's, else the
# script's. Without LOCAL_RANK (not behind torchrun) it checks the first card.
set -eu

export KD_PREFLIGHT_DEVICE_INDEX="${LOCAL_RANK:-0}"
exec kd-preflight -- python3 "$@"
