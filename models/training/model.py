"""The network: Qwen2 architecture (RMSNorm, RoPE, SwiGLU, QKV biases, tied embeddings).

Contract: `Model.forward(prefix, rows)` runs one prompt prefix of P tokens once and R rows of
L tokens that all continue that prefix. Row positions start at P and rows do not see each
other. It returns the normalised hidden states of the rows, shape (R, L, width).
Weights map one to one onto llama.cpp's `qwen2` tensors (see export_gguf.py).
"""
import math
from dataclasses import dataclass

import torch
import torch.nn as nn
import torch.nn.functional as F

from attention import attend


EMBED = 0.2  # standard deviation of the embeddings at the start


@dataclass
class Config:
    vocab: int = 3072
    width: int = 256
    layers: int = 6
    heads: int = 4
    head_dim: int = 64
    hidden: int = 640
    rope_base: float = 1_000_000.0
    context: int = 8192
    eps: float = 1e-6


def rope_table(config, length):
    """cos and sin for positions 0..length-1, each (length, head_dim / 2)."""
    half = config.head_dim // 2
    freq = config.rope_base ** (-torch.arange(half).float() / half)
    angle = torch.arange(length).float()[:, None] * freq[None]
    return angle.cos(), angle.sin()


def rotate(x, cos, sin):
    """NEOX-style rotation, as llama.cpp does for qwen2: halves, not pairs."""
    a, b = x.chunk(2, dim=-1)
    return torch.cat((a * cos - b * sin, b * cos + a * sin), dim=-1)


class Layer(nn.Module):
    def __init__(self, c):
        super().__init__()
        inner = c.heads * c.head_dim
        self.c = c
        self.attn_norm = nn.RMSNorm(c.width, eps=c.eps)
        self.qkv = nn.Linear(c.width, 3 * inner, bias=True)
        self.out = nn.Linear(inner, c.width, bias=False)
        self.ffn_norm = nn.RMSNorm(c.width, eps=c.eps)
        self.gate_up = nn.Linear(c.width, 2 * c.hidden, bias=False)
        self.down = nn.Linear(c.hidden, c.width, bias=False)

    def heads(self, x, cos, sin):
        b, t, _ = x.shape
        q, k, v = self.qkv(self.attn_norm(x)).view(b, t, 3, self.c.heads, self.c.head_dim).permute(2, 0, 3, 1, 4)
        return rotate(q, cos, sin), rotate(k, cos, sin), v

    def finish(self, x, attended):
        b, h, t, d = attended.shape
        x = x + self.out(attended.transpose(1, 2).reshape(b, t, h * d))
        gate, up = self.gate_up(self.ffn_norm(x)).chunk(2, dim=-1)
        return x + self.down(F.silu(gate) * up)


def look_back(layer, c, basis):
    """Heads 0-2 attend one, two and three tokens back and write their code: basis rows 0-63 of what they see."""
    half, size = c.head_dim // 2, c.head_dim
    freq = c.rope_base ** (-torch.arange(half).float() / half)
    amount = 8 * torch.exp(-torch.arange(half).float() / 6)
    bias = layer.qkv.bias.view(3, c.heads, size)
    weight = layer.qkv.weight.view(3, c.heads, size, c.width)
    for head in range(3):
        back = head + 1
        weight[:2, head] *= 0.1
        bias[0, head] = torch.cat((amount * torch.cos(back * freq), -amount * torch.sin(back * freq)))
        bias[1, head, :half] = amount
        weight[2, head] = basis[:size]
        layer.out.weight[:, head * size:(head + 1) * size] = 2 * EMBED * basis[back * size:(back + 1) * size].T


def match_and_copy(layer, c, basis):
    """Every head compares codes in its slowly rotating numbers, and copies a quarter of the embedding."""
    half, size, part = c.head_dim // 2, c.head_dim, c.head_dim // 4
    weight = layer.qkv.weight.view(3, c.heads, size, c.width)
    for head in range(c.heads):
        code = lambda place: basis[place * size + head * part:place * size + (head + 1) * part]
        weight[:2, head] *= 0.1
        for first, query, key, gain in ((half - part, code(0), code(1), 3.5), (size - part, code(1), code(2), 2.5)):
            weight[0, head, first:first + part] = gain * query
            weight[1, head, first:first + part] = gain * key
        weight[2, head] = basis[head * size:(head + 1) * size]
        layer.out.weight[:, head * size:(head + 1) * size] = 6 * EMBED * basis[head * size:(head + 1) * size].T


def relate(embedding, vocab):
    """Gives ` word`, `/word`, `_word` and `.word` embeddings that are near `word`'s plus one direction per prefix.

    A word that is copied from after a slash to after a space changes its token; this makes that step
    the same for all words instead of one fact per word. `vocab` maps tokens to ids.
    """
    for prefix in "\u0120/_.":
        pairs = [(i, vocab[t[1:]]) for t, i in vocab.items() if t[0] == prefix and t[1:] in vocab and t[1:].isalpha()]
        fused, plain = (torch.tensor(ids) for ids in zip(*pairs))
        direction = torch.randn(embedding.shape[1])
        direction *= 0.35 * embedding[plain].norm(dim=1).mean() / direction.norm()
        embedding[fused] = 0.6 * embedding[fused] + 0.55 * embedding[plain] + direction


class Model(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.config = config
        self.embed = nn.Embedding(config.vocab, config.width)
        self.layers = nn.ModuleList(Layer(config) for _ in range(config.layers))
        self.norm = nn.RMSNorm(config.width, eps=config.eps)
        cos, sin = rope_table(config, config.context)
        self.register_buffer("cos", cos, persistent=False)
        self.register_buffer("sin", sin, persistent=False)
        self.initialise()

    def initialise(self):
        """Random weights, with the circuit that copies (induction) set up by hand in layers 0 and 1.

        Layer 0's first three heads look one, two and three tokens back, whatever the tokens are
        (through their biases), and write a 64-number code of what they see. Layer 1 looks for places
        whose two previous tokens have the codes of this place's last two tokens, and copies the token
        there to the output. Training may keep or change all of it.
        """
        c = self.config
        for name, p in self.named_parameters():
            if p.dim() == 2:
                std = EMBED if name.startswith("embed") else 1 / math.sqrt(p.shape[1])
                if name.endswith(("out.weight", "down.weight")):
                    std *= EMBED / math.sqrt(2 * c.layers)
                nn.init.normal_(p, std=std)
            elif name.endswith("bias"):
                nn.init.zeros_(p)
        basis = torch.linalg.qr(torch.randn(c.width, c.width))[0]
        with torch.no_grad():
            self.norm.weight.fill_(0.08 / EMBED)
            look_back(self.layers[0], c, basis)
            match_and_copy(self.layers[1], c, basis)

    def forward(self, prefix, rows):
        """prefix: (P,) token ids, P may be 0; rows: (R, L) token ids."""
        p, (r, l) = len(prefix), rows.shape
        # oneDNN compiles its products anew for each number of rows; what is added at the end is not looked at.
        prefix = F.pad(prefix, (0, -p % 128))
        x, y = self.embed(rows), self.embed(prefix)[None]
        place = lambda table, first, last: table[first:last].to(x.dtype)
        here, before = ((place(self.cos, *ends), place(self.sin, *ends)) for ends in ((p, p + l), (0, len(prefix))))
        none = x.new_zeros(1, self.config.heads, 0, self.config.head_dim)
        for i, layer in enumerate(self.layers):
            q, k, v = layer.heads(x, *here)
            k0 = v0 = none
            if p:
                q0, k0, v0 = layer.heads(y, *before)
                if i + 1 < len(self.layers):
                    y = layer.finish(y, attend(q0, k0, v0, none, none))
                k0, v0 = k0[:, :, :p], v0[:, :, :p]
            x = layer.finish(x, attend(q, k, v, k0, v0))
        return self.norm(x)

    def logits(self, hidden):
        return F.linear(hidden, self.embed.weight)
