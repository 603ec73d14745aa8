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
    """Float32 masters and moments in shared memory; each worker updates its share of the tensors.

    Contract: every worker calls `step` with its own gradients in place; the sum over the workers is
    what counts, and after it all workers have the same new weights.
    """

    def __init__(self, parameters, workers, decay=0.05):
        """`parameters`: name to float32 tensor. Made once, in the main process, and given to the workers."""
        self.master = {n: p.detach().clone() for n, p in parameters.items()}
        self.average = {n: p.clone() for n, p in self.master.items()}
        self.first = {n: torch.zeros_like(p) for n, p in self.master.items()}
        self.second = {n: torch.zeros_like(p) for n, p in self.master.items() if not self.is_matrix(n)}
        self.grads = [{n: torch.zeros_like(p, dtype=torch.bfloat16) for n, p in self.master.items()} for _ in range(workers)]
        self.decay, self.steps = decay, 0
        self.owner, load = {}, [0] * workers
        for n in sorted(self.master, key=lambda n: -self.master[n].numel()):
            self.owner[n] = load.index(min(load))
            load[self.owner[n]] += self.master[n].numel()

    def share(self):
        for tensors in (self.master, self.average, self.first, self.second, *self.grads):
            for t in tensors.values():
                t.share_memory_()

    def is_matrix(self, name):
        return self.master[name].dim() == 2 and "embed" not in name

    def step(self, live, rank, rate):
        """`live`: this worker's weights by name, with gradients."""
        self.steps += 1
        for n, p in live.items():
            self.grads[rank][n].copy_(p.grad)
            p.grad = None
        dist.barrier()
        for n in live:
            if self.owner[n] == rank:
                self.update(n, sum(g[n].float() for g in self.grads), rate)
        dist.barrier()
        for n, p in live.items():
            p.data.copy_(self.master[n])

    def update(self, n, g, rate):
        m = self.first[n]
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
        if g.dim() == 2:
            self.master[n].mul_(1 - rate * self.decay)
        self.master[n].sub_(update, alpha=rate)
        self.average[n].lerp_(self.master[n], 0.02)

    def state(self):
        return {"master": self.master, "average": self.average, "first": self.first, "second": self.second, "steps": self.steps}

    def load(self, state):
        self.__dict__.update(state)


def feed(seed, order, shares, queue):
    """A process of its own: fills the queue with groups."""
    from tokenizers import Tokenizer
    import stream
    torch.set_num_threads(1)
    for group in stream.groups(Tokenizer.from_file(os.path.join(HERE, "tokenizer.json")), seed, order, shares):
        queue.put(group)


def start(args):
    """(config, optimizer, tokens seen, tokens written, seconds): a new model's, or the checkpoint's."""
    import model as net
    from tokenizers import Tokenizer
    tokenizer = Tokenizer.from_file(os.path.join(HERE, "tokenizer.json"))
    torch.manual_seed(args.seed)
    saved = torch.load(args.checkpoint, weights_only=False) if os.path.exists(args.checkpoint) else None
    config = net.Config(**saved["config"]) if saved else net.Config(vocab=tokenizer.get_vocab_size(), layers=args.layers, hidden=args.hidden)
    model = net.Model(config)
    net.relate(model.embed.weight.data, tokenizer.get_vocab())
    optimizer = Optimizer(dict(model.named_parameters()), args.workers)
    if saved:
        optimizer.load(saved["optimizer"])
    optimizer.share()
    return (config, optimizer, saved["tokens"], saved["written"], saved["seconds"]) if saved else (config, optimizer, 0, 0, 0.0)


def work(rank, args, stages, config, optimizer, tokens, written, trained):
    """One worker. `stages` (shared): per worker, twice the steps it has done, plus 1 after the step's first forward pass.

    A worker that is through while another has not got that far takes one more group, rather than wait
    for a processor that others use.
    """
    import attention
    import model as net
    torch.set_num_threads(1)
    attention.build()
    dist.init_process_group("gloo", init_method=f"tcp://127.0.0.1:{args.port}", rank=rank, world_size=args.workers)
    model = net.Model(config).bfloat16()
    live = dict(model.named_parameters())
    for n, p in live.items():
        p.data.copy_(optimizer.master[n])
    if not args.no_compile:
        net.Layer.heads = torch.compile(net.Layer.heads, dynamic=True)
        net.Layer.finish = torch.compile(net.Layer.finish, dynamic=True)
    queue = mp.get_context("spawn").Queue(6)
    mp.get_context("spawn").Process(target=feed, args=(f"{args.seed} {optimizer.steps} {rank}", f"{args.seed} {optimizer.steps}", args.shares, queue), daemon=True).start()
    last_save = last_time = time.time()
    totals = {}
    while last_time < args.until:
        now, groups = torch.zeros(3, dtype=torch.float64), 0
        while groups == 0 or (groups < 3 and stages.min() < 2 * optimizer.steps + 1):
            kind, prefix, rows, weights = queue.get()
            rows, weights = torch.from_numpy(rows), torch.from_numpy(weights)
            hidden = model(torch.from_numpy(prefix), rows[:, :-1])
            chosen = torch.nonzero(weights[:, 1:].flatten()).flatten()
            padded = F.pad(chosen, (0, -len(chosen) % 128))
            logits = model.logits(hidden.flatten(0, 1)[padded])[: len(chosen)]
            losses = F.cross_entropy(logits.float(), rows[:, 1:].flatten()[chosen], reduction="none")
            stages[rank] = max(int(stages[rank]), 2 * optimizer.steps + 1)
            (losses.sum() / 1000).backward()
            groups += 1
            now += torch.tensor([float(len(prefix) + rows.numel()), float(len(chosen)), 0.0])
            seen = totals.setdefault(kind, [0.0, 0])
            seen[0] += float(losses.detach().sum())
            seen[1] += len(losses)
        now[2] = time.time() if rank == 0 else 0.0
        dist.all_reduce(now)
        rate = args.rate * min(1, (optimizer.steps + 1) / 60, max(0.0, (args.until - float(now[2])) / args.fall_seconds))
        optimizer.step(live, rank, rate)
        tokens, written, trained = tokens + int(now[0]), written + int(now[1]), trained + float(now[2]) - last_time
        last_time = float(now[2])
        if rank == 0 and optimizer.steps % 25 == 0:
            shown = " ".join(f"{k} {s / max(1, n):.3f}" for k, (s, n) in sorted(totals.items()))
            print(f"step {optimizer.steps} {trained:.0f}s {tokens / 1e6:.2f}M tokens, {written / 1e6:.2f}M written, rate {rate:.5f}: {shown}", flush=True)
            totals = {}
        if last_time - last_save > args.save_seconds or last_time >= args.until:
            if rank == 0:
                torch.save({"config": config.__dict__, "optimizer": optimizer.state(), "tokens": tokens, "written": written, "seconds": trained}, args.checkpoint + ".new")
                os.replace(args.checkpoint + ".new", args.checkpoint)
            dist.barrier()
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
    import attention
    attention.build()
    mp.spawn(work, args=(args, torch.zeros(args.workers, dtype=torch.int64).share_memory_(), *start(args)), nprocs=args.workers)


if __name__ == "__main__":
    main()
