"""Attention of rows that share a prefix: attention.cpp where the processor has AMX, else PyTorch's.

Contract: `attend(q, k, v, k0, v0)`; q, k, v are (R, heads, L, size), k0 and v0 (1, heads, P, size), P may be 0.
"""
import os

import torch
import torch.nn.functional as F

HERE = os.path.dirname(os.path.abspath(__file__))
native = None


def build():
    """Compiles attention.cpp (once, into PyTorch's cache). Call it in the main process, before the workers do."""
    global native
    if "amx_bf16" not in open("/proc/cpuinfo", encoding="utf8").read():
        return
    from torch.utils.cpp_extension import load
    native = load("fermata_attention", [os.path.join(HERE, "attention.cpp")], extra_cflags=["-O3", "-march=sapphirerapids"])


class Shared(torch.autograd.Function):
    @staticmethod
    def forward(ctx, q, k, v, k0, v0):
        parts = [t.contiguous() for t in (q, k, v, k0[0], v0[0])]
        out, sums = native.forward(*parts)
        ctx.save_for_backward(*parts, out, sums)
        return out

    @staticmethod
    def backward(ctx, grad):
        gq, gk, gv, gk0, gv0 = native.backward(grad.contiguous(), *ctx.saved_tensors)
        return gq, gk, gv, gk0[None], gv0[None]


def attend(q, k, v, k0, v0):
    if native and q.dtype == torch.bfloat16 and q.shape[-1] == 64:
        return Shared.apply(q, k, v, k0, v0)
    p, r, l = k0.shape[2], q.shape[0], q.shape[2]
    if not p:
        return F.scaled_dot_product_attention(q, k, v, is_causal=True)
    k, v = (torch.cat((t0.expand(r, -1, -1, -1), t), dim=2) for t0, t in ((k0, k), (v0, v)))
    return F.scaled_dot_product_attention(q, k, v, attn_mask=torch.ones(l, p + l, dtype=torch.bool).tril(p))
