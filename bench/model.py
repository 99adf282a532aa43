"""The contention model in Python, for comparison: exponential demand, m = 20, u = 70 %, burst 100 %.

Prints one JSON object: for each form the nanoseconds per cgroup and period on one core, and P(WCET > 1) as a check
that it is the same model. Each form is written as one would write it who wants it quick:

  numpy   the published steps as numpy operations over the cgroups, in a Python loop over the periods
  numba   the published steps as compiled loops, np.random.exponential
  lindley V' = max(0, V + x - q) as a compiled loop, numpy's Generator (PCG64, ziggurat)
"""
import json
import sys
import time

import numba
import numpy as np

M, U, BURST = 20, 0.7, 1.0


def numpy_loop(periods, seed):
    rng = np.random.default_rng(seed)
    quota = 1 / M
    need, tokens = np.zeros(M), np.full(M, BURST * quota)
    broken = 0
    for _ in range(periods):
        need += rng.exponential(U * quota, M)
        used = np.minimum(need, quota)
        spare = quota - used
        free = spare.sum()
        tokens = np.minimum(BURST * quota, tokens + spare)
        need -= used
        claim = np.minimum(need, tokens)
        grant = claim
        if claim.sum() > free:
            broken += 1
            order = np.sort(claim)
            below = np.concatenate(([0.0], np.cumsum(order)[:-1]))
            levels = (free - below) / np.arange(M, 0, -1)
            level = levels[np.argmax(order >= levels)]
            grant = np.minimum(claim, level)
        need -= grant
        tokens -= grant
    return broken / periods


@numba.njit
def numba_full(periods, seed, m, u, burst):
    np.random.seed(seed)
    quota = 1 / m
    need, tokens, claim = np.zeros(m), np.full(m, burst * quota), np.zeros(m)
    broken = 0
    for _ in range(periods):
        free = 0.0
        claims = 0.0
        for j in range(m):
            n = need[j] + np.random.exponential(u * quota)
            used = min(n, quota)
            free += quota - used
            tokens[j] = min(burst * quota, tokens[j] + quota - used)
            need[j] = n - used
            claim[j] = min(need[j], tokens[j])
            claims += claim[j]
        if claims <= free:
            for j in range(m):
                need[j] -= claim[j]
                tokens[j] -= claim[j]
            continue
        broken += 1
        hungry = m
        while free > 1e-15 and hungry > 0:
            part = free / hungry
            hungry = 0
            for j in range(m):
                grant = min(claim[j], part)
                claim[j] -= grant
                need[j] -= grant
                tokens[j] -= grant
                free -= grant
                if claim[j] > 0:
                    hungry += 1
    return broken / periods


@numba.njit
def numba_lindley(periods, rng, m, u, burst):
    quota = 1 / m
    c = burst * quota
    v = np.zeros(m)
    backlog = 0.0
    broken = 0
    for _ in range(periods):
        total = 0.0
        for j in range(m):
            x = rng.standard_exponential() * (u * quota)
            held = max(0.0, v[j] - c)
            v[j] = max(0.0, v[j] + x - quota)
            total += x + held - max(0.0, v[j] - c)
        backlog = max(0.0, backlog + total - 1)
        if backlog > 1e-12:
            broken += 1
    return broken / periods


def measure(run, periods):
    begin = time.perf_counter()
    missed = run(periods)
    return {"ns": (time.perf_counter() - begin) / periods / M * 1e9, "missed": missed}


def main():
    forms = {
        "numpy": (lambda n: numpy_loop(n, 1), 30_000),
        "numba": (lambda n: numba_full(n, 1, M, U, BURST), 3_000_000),
        "lindley": (lambda n: numba_lindley(n, np.random.Generator(np.random.PCG64(1)), M, U, BURST), 5_000_000),
    }
    for run, _ in forms.values():
        run(100)  # compile
    print(json.dumps({name: measure(run, periods) for name, (run, periods) in forms.items()}))


if __name__ == "__main__":
    sys.exit(main())
