"""Trains the model until a wall-clock time, data-parallel over single-threaded processes.

Weights are bfloat16 with float32 masters and a running average of the last 50 steps, which is what
is exported; matrices learn with Muon, the rest with Adam. The
learning rate is constant and then falls linearly to zero at --until. A checkpoint is written every
--save-seconds and training resumes from it, also with a changed data stream.
"""
import argparse
import datetime
import os
import time

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
import torch.nn.functional as F

HERE = os.path.dirname(os.path.abspath(__file__))


def orthogonal(g):
    """Newton-Schulz iteration: the nearest semi-orthogonal matrices to a batch of matrices."""
    x = g / (g.norm(dim=(-2, -1), keepdim=True) + 1e-7)
    wide = x.shape[-2] <= x.shape[-1]
    x = (x if wide else x.mT).bfloat16()
    for _ in range(5):
        a = x @ x.mT
        x = 3.4445 * x + (-4.7750 * a + 2.0315 * a @ a) @ x
    return (x if wide else x.mT).float()


class Optimizer:
    def __init__(self, model, decay=0.05):
        self.live = dict(model.named_parameters())
        self.master = {n: p.detach().float().clone() for n, p in self.live.items()}
        self.first = {n: torch.zeros_like(p) for n, p in self.master.items()}
        self.second = {n: torch.zeros_like(p) for n, p in self.master.items() if not self.is_matrix(n)}
        self.average = {n: p.clone() for n, p in self.master.items()}
        self.decay, self.steps = decay, 0

    def is_matrix(self, name):
        return self.live[name].dim() == 2 and "embed" not in name

    def step(self, rate):
        self.steps += 1
        for n, p in self.live.items():
            g, m = p.grad.float(), self.first[n]
            if self.is_matrix(n):
                m.mul_(0.95).add_(g)
                parts = 3 if "qkv" in n else 2 if "gate_up" in n else 1
                update = orthogonal((g + 0.95 * m).view(parts, -1, g.shape[1]))
                update = update.view_as(g) * 0.2 * max(g.shape[0] // parts, g.shape[1]) ** 0.5
            else:
                v = self.second[n]
                m.lerp_(g, 0.1)
                v.lerp_(g * g, 0.02)
                update = (m / (1 - 0.9 ** self.steps)) / ((v / (1 - 0.98 ** self.steps)).sqrt() + 1e-8)
            if p.dim() == 2:
                self.master[n].mul_(1 - rate * self.decay)
            self.master[n].sub_(update, alpha=rate)
            self.average[n].lerp_(self.master[n], 0.02)
            p.data.copy_(self.master[n])
            p.grad = None

    def state(self):
        return {"master": self.master, "average": self.average, "first": self.first, "second": self.second, "steps": self.steps}

    def load(self, state):
        self.__dict__.update(state)
        for n, p in self.live.items():
            p.data.copy_(self.master[n])


def feed(seed, order, shares, queue):
    """A process of its own: fills the queue with groups."""
    from tokenizers import Tokenizer
    import stream
    torch.set_num_threads(1)
    for group in stream.groups(Tokenizer.from_file(os.path.join(HERE, "tokenizer.json")), seed, order, shares):
        queue.put(group)


def work(rank, args):
    import model as net
    from tokenizers import Tokenizer
    torch.set_num_threads(1)
    torch.manual_seed(args.seed)
    dist.init_process_group("gloo", init_method=f"tcp://127.0.0.1:{args.port}", rank=rank, world_size=args.workers)
    tokenizer = Tokenizer.from_file(os.path.join(HERE, "tokenizer.json"))
    config = net.Config(vocab=tokenizer.get_vocab_size(), layers=args.layers, hidden=args.hidden)
    model = net.Model(config)
    net.relate(model.embed.weight.data, tokenizer.get_vocab())
    model = model.bfloat16()
    if not args.no_compile:
        net.Layer.heads = torch.compile(net.Layer.heads, dynamic=True)
        net.Layer.finish = torch.compile(net.Layer.finish, dynamic=True)
    optimizer, tokens, written, trained = Optimizer(model), 0, 0, 0.0
    if os.path.exists(args.checkpoint):
        saved = torch.load(args.checkpoint, weights_only=False)
        optimizer.load(saved["optimizer"])
        tokens, written, trained = saved["tokens"], saved["written"], saved["seconds"]
    queue = mp.get_context("spawn").Queue(6)
    mp.get_context("spawn").Process(target=feed, args=(f"{args.seed} {optimizer.steps} {rank}", f"{args.seed} {optimizer.steps}", args.shares, queue), daemon=True).start()
    last_save = last_time = time.time()
    totals = {}
    while last_time < args.until:
        kind, prefix, rows, weights = queue.get()
        rows, weights = torch.from_numpy(rows), torch.from_numpy(weights)
        hidden = model(torch.from_numpy(prefix), rows[:, :-1])
        chosen = weights[:, 1:] > 0
        losses = F.cross_entropy(model.logits(hidden[chosen]).float(), rows[:, 1:][chosen], reduction="none")
        (losses.sum() / 1000).backward()
        flat = torch.cat([p.grad.float().view(-1) for p in model.parameters()])
        counts = torch.tensor([float(len(prefix) + rows.numel()), float(chosen.sum()), time.time() - last_time], dtype=torch.float64)
        dist.all_reduce(flat)
        dist.all_reduce(counts)
        at = 0
        for p in model.parameters():
            p.grad = flat[at:at + p.numel()].view_as(p).to(p.dtype)
            at += p.numel()
        rate = args.rate * min(1, (optimizer.steps + 1) / 60, max(0.0, (args.until - time.time()) / args.fall_seconds))
        optimizer.step(rate)
        now = torch.tensor(time.time(), dtype=torch.float64)
        dist.broadcast(now, 0)
        tokens, written, trained = tokens + int(counts[0]), written + int(counts[1]), trained + float(now) - last_time
        last_time = float(now)
        seen = totals.setdefault(kind, [0.0, 0])
        seen[0] += float(losses.detach().sum())
        seen[1] += len(losses)
        if rank == 0 and optimizer.steps % 25 == 0:
            shown = " ".join(f"{k} {s / max(1, n):.3f}" for k, (s, n) in sorted(totals.items()))
            print(f"step {optimizer.steps} {trained:.0f}s {tokens / 1e6:.2f}M tokens, {tokens / trained:.0f}/s, rate {rate:.5f}: {shown}", flush=True)
            totals = {}
        if rank == 0 and (last_time - last_save > args.save_seconds or last_time >= args.until):
            torch.save({"config": config.__dict__, "optimizer": optimizer.state(), "tokens": tokens, "written": written, "seconds": trained}, args.checkpoint + ".new")
            os.replace(args.checkpoint + ".new", args.checkpoint)
            last_save = last_time
    os._exit(0)


def shares(text):
    """`copy=40,talk=15` as a dict."""
    return {k: float(v) for k, v in (part.split("=") for part in text.split(","))}


def clock(text):
    """Seconds since the epoch of the next HH:MM."""
    now = datetime.datetime.now()
    then = now.replace(hour=int(text[:2]), minute=int(text[3:]), second=0, microsecond=0)
    return (then if then > now else then + datetime.timedelta(days=1)).timestamp()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("checkpoint", help="file to write, and to resume from if it exists")
    parser.add_argument("--until", type=clock, required=True, help="HH:MM at which training ends")
    parser.add_argument("--fall-seconds", type=float, default=1500, help="length of the final fall of the learning rate")
    parser.add_argument("--rate", type=float, default=3e-3)
    parser.add_argument("--layers", type=int, default=5)
    parser.add_argument("--hidden", type=int, default=640)
    parser.add_argument("--shares", type=shares, default={}, help="shares of the groups, as copy=40,talk=15 (default: stream.RECIPES)")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--save-seconds", type=float, default=120)
    parser.add_argument("--port", type=int, default=29517)
    parser.add_argument("--no-compile", action="store_true")
    args = parser.parse_args()
    mp.spawn(work, args=(args,), nprocs=args.workers)


if __name__ == "__main__":
    main()
