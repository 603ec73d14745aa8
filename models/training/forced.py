"""Quick score of a checkpoint: which held-out turns would greedy decoding get right?

Greedy decoding writes the expected turn exactly if the model's best token is the expected one at
every position of the turn, so one forward pass scores a whole dialogue. evaluate.py scores the GGUF.
"""
import argparse
import os

import torch
from tokenizers import Tokenizer

import heldout
import model as net
import stream
from render import render

HERE = os.path.dirname(os.path.abspath(__file__))


def load(checkpoint):
    saved = torch.load(checkpoint, weights_only=False, map_location="cpu")
    model = net.Model(net.Config(**saved["config"]))
    model.load_state_dict(saved["optimizer"]["average"])
    return model.eval(), saved


def turns(model, tokenizer, messages, tools):
    """For each assistant turn: (whether it calls, whether it is right, its text with << >> at the first wrong token)."""
    pieces = render(messages, tools)
    ids, written = stream.encode(tokenizer, pieces)
    with torch.no_grad():
        best = model.logits(model(torch.zeros(0, dtype=torch.long), torch.tensor([ids]))[0]).argmax(-1).tolist()
    out, at = [], 0
    for text, is_written in pieces:
        size = len(tokenizer.encode(text).ids)
        if is_written:
            wrong = [i for i in range(at, at + size) if best[i - 1] != ids[i]]
            shown = text if not wrong else tokenizer.decode(ids[at:wrong[0]], skip_special_tokens=False) + f" <<{tokenizer.decode([best[wrong[0] - 1]], skip_special_tokens=False)}>> " + tokenizer.decode(ids[wrong[0]:at + size], skip_special_tokens=False)
            out.append(("<tool_call>" in text, not wrong, shown))
        at += size
    return out


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("checkpoint")
    parser.add_argument("--dialogues", type=int, default=10, help="per behaviour")
    parser.add_argument("--behaviours", default=",".join(heldout.BEHAVIOURS))
    parser.add_argument("--words", choices=("heldout", "train"), default="heldout", help="values of words that training never draws, or new values of those it does")
    parser.add_argument("--seed", type=int, default=heldout.SEED)
    parser.add_argument("--show", type=int, default=0, help="print this many wrong turns per behaviour, << >> at the first wrong token")
    args = parser.parse_args()
    torch.set_num_threads(1)
    model, saved = load(args.checkpoint)
    tokenizer = Tokenizer.from_file(os.path.join(HERE, "tokenizer.json"))
    print(saved["optimizer"]["steps"], "steps", saved["tokens"], "tokens")
    table, shown = {}, {}
    for behaviour, messages, tools in heldout.dialogues(args.seed, args.dialogues, args.behaviours.split(","), args.words):
        row = table.setdefault(behaviour, [0] * 6)
        scored = turns(model, tokenizer, messages, tools)
        for calls, right, text in scored:
            row[0 if calls else 2] += right
            row[1 if calls else 3] += 1
            if not right and shown.get(behaviour, 0) < args.show:
                shown[behaviour] = shown.get(behaviour, 0) + 1
                print(f"--- {behaviour}: {messages[0]['content'][:200]!r}\n{text}")
        row[4] += all(right for _, right, _ in scored)
        row[5] += 1
    table["all but unseen_tools"] = [sum(column) for column in zip(*(row for b, row in table.items() if b != "unseen_tools"))]
    for behaviour, (a, b, c, d, e, f) in table.items():
        print(f"{behaviour:22} calls {a}/{b}  answers {c}/{d}  dialogues {e}/{f}")


if __name__ == "__main__":
    main()
