"""Writes a checkpoint as a GGUF that llama.cpp loads: qwen2 tensors, tokenizer, chat template.

Matrices are F16 (or Q8_0 with --type q8_0), norms and biases F32. The query and key rows need no
permutation: llama.cpp rotates qwen2's halves (NEOX) as model.py does.
"""
import argparse
import hashlib
import json
import os

import gguf
import numpy as np
import torch

from build_tokenizer import CONTROL, USER_DEFINED

HERE = os.path.dirname(os.path.abspath(__file__))


def tokenizer_tables():
    data = json.load(open(os.path.join(HERE, "tokenizer.json"), encoding="utf8"))
    vocab = {**data["model"]["vocab"], **{t["content"]: t["id"] for t in data["added_tokens"]}}
    tokens = sorted(vocab, key=vocab.get)
    kinds = [gguf.TokenType.CONTROL if t in CONTROL else gguf.TokenType.USER_DEFINED if t in USER_DEFINED else gguf.TokenType.NORMAL for t in tokens]
    return tokens, kinds, [" ".join(m) for m in data["model"]["merges"]], vocab


def llama_names(state, layers, heads_width):
    """Our tensors under llama.cpp's names."""
    out = {"token_embd.weight": state["embed.weight"], "output_norm.weight": state["norm.weight"]}
    for i in range(layers):
        get = lambda name: state[f"layers.{i}.{name}"]
        put = lambda name, value: out.__setitem__(f"blk.{i}.{name}", value)
        put("attn_norm.weight", get("attn_norm.weight"))
        put("ffn_norm.weight", get("ffn_norm.weight"))
        for part, w, b in zip("qkv", get("qkv.weight").split(heads_width), get("qkv.bias").split(heads_width)):
            put(f"attn_{part}.weight", w)
            put(f"attn_{part}.bias", b)
        put("attn_output.weight", get("out.weight"))
        gate, up = get("gate_up.weight").chunk(2)
        put("ffn_gate.weight", gate)
        put("ffn_up.weight", up)
        put("ffn_down.weight", get("down.weight"))
    return out


def export(checkpoint, output, kind="f16"):
    saved = torch.load(checkpoint, weights_only=False, map_location="cpu")
    c, state = saved["config"], saved["optimizer"]["average"]
    writer = gguf.GGUFWriter(output, "qwen2")
    writer.add_name("Fermata small")
    writer.add_description("A small model trained from scratch to call tools; ships with Fermata.")
    writer.add_license("mit")
    writer.add_context_length(c["context"])
    writer.add_embedding_length(c["width"])
    writer.add_block_count(c["layers"])
    writer.add_feed_forward_length(c["hidden"])
    writer.add_head_count(c["heads"])
    writer.add_head_count_kv(c["heads"])
    writer.add_rope_freq_base(c["rope_base"])
    writer.add_rope_dimension_count(c["head_dim"])
    writer.add_layer_norm_rms_eps(c["eps"])
    writer.add_vocab_size(c["vocab"])
    writer.add_file_type(gguf.LlamaFileType.MOSTLY_F16 if kind == "f16" else gguf.LlamaFileType.MOSTLY_Q8_0)
    tokens, kinds, merges, ids = tokenizer_tables()
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("qwen2")
    writer.add_token_list(tokens)
    writer.add_token_types(kinds)
    writer.add_token_merges(merges)
    writer.add_eos_token_id(ids["<|im_end|>"])
    writer.add_pad_token_id(ids["<|endoftext|>"])
    writer.add_bos_token_id(ids["<|endoftext|>"])
    writer.add_add_bos_token(False)
    writer.add_chat_template(open(os.path.join(HERE, "chat_template.jinja"), encoding="utf8").read())
    for name, tensor in llama_names(state, c["layers"], c["heads"] * c["head_dim"]).items():
        array = tensor.numpy().astype(np.float32)
        if array.ndim == 1:
            writer.add_tensor(name, array)
        elif kind == "f16":
            writer.add_tensor(name, array.astype(np.float16))
        else:
            q8 = gguf.GGMLQuantizationType.Q8_0
            writer.add_tensor(name, gguf.quants.quantize(array, q8), raw_dtype=q8)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return saved


def manifest(output, kind):
    """What the server reads of the models in this folder: which it serves by default, and how a
    model samples unless a request says otherwise. The rest is for people."""
    data = open(output, "rb").read()
    name = os.path.basename(output)
    entry = {
        "size": len(data),
        "sha256": hashlib.sha256(data).hexdigest(),
        "license": "MIT",
        "architecture": "qwen2",
        "type": kind,
        "contextLength": 8192,
        "templateFormat": "qwen (ChatML, <tool_call> JSON)",
        "sampling": {"temperature": 0},
    }
    return {"default": name, "models": {name: entry}}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("checkpoint")
    parser.add_argument("output")
    parser.add_argument("--type", choices=("f16", "q8_0"), default="f16")
    parser.add_argument("--manifest", help="also write this manifest.json")
    args = parser.parse_args()
    saved = export(args.checkpoint, args.output, args.type)
    if args.manifest:
        with open(args.manifest, "w", encoding="utf8") as f:
            f.write(json.dumps(manifest(args.output, args.type), indent=2) + "\n")
    print(args.output, os.path.getsize(args.output), "bytes,", saved["tokens"], "tokens,", round(saved["seconds"]), "s")


if __name__ == "__main__":
    main()
