"""A data-parallel trainer to start your own from: one process a GPU, launched by torchrun.

    python -m trainer                                    one process, to try it
    torchrun --nproc-per-node gpu -m trainer             all GPUs of this machine
    torchrun --nproc-per-node 2 -m trainer --help        two CPU ranks; every argument

Read it in this order: `main` (the whole run), `steps` (one step), `sampler`
(who gets which sample), `checkpoint` (what survives), `models` and `data`
(what to replace by your own).  `ddp-check` runs these very parts.
"""
