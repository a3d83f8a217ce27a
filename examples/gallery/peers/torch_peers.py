"""The gallery's programs in PyTorch: the same data, networks, optimizers and numbers of steps, for the table of README.md.

    python3 torch_peers.py NAME...      prints the result and the seconds without the import of PyTorch
"""
import gzip
import math
import os
import pathlib
import sys
import time

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

DATA = os.environ.get("FASHION_MNIST_DIR", "/usr/share/datasets/fashion-mnist")
GALLERY = pathlib.Path(__file__).parent.parent


def clothes(name, n):
    images = np.frombuffer(gzip.open(f"{DATA}/{name}-images-idx3-ubyte.gz").read(), np.uint8, offset=16)
    labels = np.frombuffer(gzip.open(f"{DATA}/{name}-labels-idx1-ubyte.gz").read(), np.uint8, offset=8)
    images = torch.from_numpy(images.reshape(-1, 1, 28, 28)[:n].copy()).float() / 255
    return images, torch.from_numpy(labels[:n].copy()).long()


def batches(n, size):
    return torch.randperm(n).split(size)


def step(optimizer, loss):
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss.item()


def convnet():
    x, y = clothes("train", 20000)
    test_x, test_y = clothes("t10k", 2000)

    def block(inputs, filters):
        return [nn.Conv2d(inputs, filters, 3, padding=1, bias=False), nn.BatchNorm2d(filters), nn.ReLU(),
                nn.MaxPool2d(2), nn.Dropout(0.1)]
    net = nn.Sequential(*block(1, 16), *block(16, 32), nn.Flatten(), nn.Linear(1568, 64), nn.ReLU(), nn.Linear(64, 10))
    optimizer = torch.optim.Adam(net.parameters(), 2e-3)
    for _ in range(2):
        for i in batches(20000, 64):
            step(optimizer, F.cross_entropy(net(x[i]), y[i]))
    net.eval()
    with torch.no_grad():
        return f"accuracy {(net(test_x).argmax(1) == test_y).float().mean():.3f}"


def vae():
    x = clothes("train", 60000)[0].reshape(-1, 784)
    hidden, mean, log_variance = nn.Linear(784, 256), nn.Linear(256, 8), nn.Linear(256, 8)
    decoder = nn.Sequential(nn.Linear(8, 256), nn.ReLU(), nn.Linear(256, 784))
    parameters = [p for m in (hidden, mean, log_variance, decoder) for p in m.parameters()]
    optimizer = torch.optim.Adam(parameters, 1e-3)
    for _ in range(3):
        total = 0
        for i in batches(60000, 128):
            h = hidden(x[i]).relu()
            m, v = mean(h), log_variance(h)
            z = m + (v / 2).exp() * torch.randn_like(m)
            loss = F.binary_cross_entropy_with_logits(decoder(z), x[i], reduction="none").sum(1)
            loss = (loss - 0.5 * (1 + v - m**2 - v.exp()).sum(1)).mean()
            total += step(optimizer, loss) * len(i)
    return f"loss {total / 60000:.1f}"


def weather():
    rng = np.random.default_rng(7)
    front = warmth = wind = 0.0
    rows = []
    for hour in range(24 * 365):
        front = 0.97 * front + 0.5 * rng.normal()
        warmth = 0.96 * warmth - 0.15 * front
        wind = 0.9 * wind + 0.4 * abs(rng.normal())
        season, day = math.sin(2 * math.pi * hour / 8760), math.sin(2 * math.pi * hour / 24)
        rows.append([10 + 8 * season + 4 * day + warmth, 1013 + 4 * front, wind])
    series = torch.tensor(rows)
    series = (series - series[:7000].mean(0)) / series[:7000].std(0)
    lstm, head = nn.LSTM(3, 32, batch_first=True), nn.Sequential(nn.Linear(32, 16), nn.ReLU(), nn.Linear(16, 1))
    optimizer = torch.optim.Adam([*lstm.parameters(), *head.parameters()], 3e-3)

    def forecast(begin):
        return head(lstm(series[begin[:, None] + torch.arange(48)])[0][:, -1])
    for _ in range(6):
        for i in batches(6940, 64):
            step(optimizer, F.mse_loss(forecast(i), series[i + 59, :1]))
    with torch.no_grad():
        i = torch.arange(7000, 8700)
        error = (forecast(i) - series[i + 59, :1]).abs().mean()
        return f"error {error / (series[i + 59, 0] - series[i + 35, 0]).abs().mean():.2f} of persistence"


def text_transformer():
    text = (GALLERY.parent / "data" / "coriolanus.txt").read_text()
    letters = sorted(set(text))
    tokens = torch.tensor([letters.index(c) for c in text])
    context, width = 48, 64
    embedding, position = nn.Embedding(len(letters), width), nn.Embedding(context, width)
    layer = nn.TransformerEncoderLayer(width, 4, 4 * width, 0.1, F.gelu, batch_first=True, norm_first=True)
    blocks = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
    head = nn.Sequential(nn.LayerNorm(width), nn.Linear(width, len(letters)))
    mask = nn.Transformer.generate_square_subsequent_mask(context)
    parts = nn.ModuleList([embedding, position, blocks, head])
    optimizer = torch.optim.AdamW(parts.parameters(), 4e-3, weight_decay=0.01)
    for _ in range(3):
        total = 0
        for _ in range(100):
            window = tokens[torch.randint(len(tokens) - context - 1, (24, 1)) + torch.arange(context + 1)]
            x = blocks(embedding(window[:, :-1]) + position.weight, mask=mask, is_causal=True)
            total += step(optimizer, F.cross_entropy(head(x).transpose(1, 2), window[:, 1:]))
    return f"loss {total / 100:.2f}"


def wgan_gp():
    def places(n):
        return 2 * torch.stack([(n * math.pi / 4).cos(), (n * math.pi / 4).sin()], 1)

    def mlp(inputs, activation, outputs):
        return nn.Sequential(nn.Linear(inputs, 64), activation, nn.Linear(64, 64), activation, nn.Linear(64, outputs))
    generator, critic = mlp(4, nn.ReLU(), 2), mlp(2, nn.LeakyReLU(0.2), 1)
    optimizers = [torch.optim.Adam(m.parameters(), 5e-4, (0.5, 0.9)) for m in (generator, critic)]
    for _ in range(1001):
        for _ in range(5):
            real = places(torch.randint(8, (256,))) + 0.1 * torch.randn(256, 2)
            fake = generator(torch.randn(256, 4)).detach()
            between = (real + torch.rand(256, 1) * (fake - real)).requires_grad_()
            gradient, = torch.autograd.grad(critic(between).sum(), between, create_graph=True)
            distance = critic(real).mean() - critic(fake).mean()
            step(optimizers[1], ((gradient.norm(dim=1) - 1) ** 2).mean() - distance)
        step(optimizers[0], -critic(generator(torch.randn(256, 4))).mean())
    near = torch.cdist(generator(torch.randn(2000, 4)), places(torch.arange(8))) < 0.5
    return f"near {near.sum().item() / 2000:.2f}, fewest {near.sum(0).min()}"


def burgers_pinn():
    net = nn.Sequential(nn.Linear(2, 32), nn.Tanh(), nn.Linear(32, 32), nn.Tanh(), nn.Linear(32, 32), nn.Tanh(),
                        nn.Linear(32, 1))
    for m in net[::2]:
        nn.init.xavier_uniform_(m.weight), nn.init.zeros_(m.bias)
    optimizer = torch.optim.Adam(net.parameters(), 5e-3)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 3000)

    def u(x, t):
        return net(torch.cat([x, t], 1))
    for _ in range(3001):
        x, t = (torch.rand(512, 1) * 2 - 1).requires_grad_(), torch.rand(512, 1).requires_grad_()
        value = u(x, t)
        u_x, u_t = torch.autograd.grad(value.sum(), (x, t), create_graph=True)
        u_xx, = torch.autograd.grad(u_x.sum(), x, create_graph=True)
        x0, wall, one = torch.rand(64, 1) * 2 - 1, torch.rand(64, 1), torch.ones(64, 1)
        step(optimizer, ((u_t + value * u_x - 0.1 / math.pi * u_xx) ** 2).mean() +
             ((u(x0, 0 * one) + (math.pi * x0).sin()) ** 2).mean() + (u(-one, wall) ** 2 + u(one, wall) ** 2).mean())
        schedule.step()
    exact = torch.tensor([0.074244, 0.148330, 0.222089, 0.295324, 0.367777, 0.438973, 0.507104, 0.559686, 0.501820, 0.0])
    exact = torch.cat([exact, -exact[:-1].flip(0)])[:, None]
    with torch.no_grad():
        found = u(torch.linspace(-0.9, 0.9, 19)[:, None], torch.ones(19, 1))
    return f"relative error {(found - exact).norm() / exact.norm():.4f}"


def reinforce_cartpole():
    rng = np.random.default_rng(1)
    policy = nn.Sequential(nn.Linear(4, 64), nn.ReLU(), nn.Linear(64, 2))
    optimizer = torch.optim.Adam(policy.parameters(), 1e-2)
    average = 0
    for episode in range(1, 401):
        x, speed, angle, turn = rng.uniform(-0.05, 0.05, 4)
        states, actions, stands = [], [], True
        while stands and len(actions) < 200:
            states.append([x, speed, angle, turn])
            with torch.no_grad():
                actions.append(torch.multinomial(policy(torch.tensor([states[-1]]).float()).softmax(1), 1).item())
            sine, cosine = math.sin(angle), math.cos(angle)
            push = ((10 if actions[-1] else -10) + 0.05 * turn * turn * sine) / 1.1
            turning = (9.8 * sine - cosine * push) / (0.5 * (4 / 3 - 0.1 * cosine * cosine / 1.1))
            x, speed = x + 0.02 * speed, speed + 0.02 * (push - 0.05 * turning * cosine / 1.1)
            angle, turn = angle + 0.02 * turn, turn + 0.02 * turning
            stands = abs(x) < 2.4 and abs(angle) < 0.2095
        returns = [1.0] * len(actions)
        for i in range(len(returns) - 2, -1, -1):
            returns[i] += 0.99 * returns[i + 1]
        returns = torch.tensor(returns)
        advantage = (returns - returns.mean()) / (returns.std(correction=0) + 1e-6)
        losses = F.cross_entropy(policy(torch.tensor(states).float()), torch.tensor(actions), reduction="none")
        step(optimizer, (losses * advantage).mean())
        average += (len(actions) - average) * max(0.05, 1 / episode)
    return f"stands {average:.0f}"


def neural_ode():
    def odeint(f, y, times):
        ys = [y]
        for h in times[1:] - times[:-1]:
            k1 = f(y)
            k2 = f(y + h / 2 * k1)
            k3 = f(y + h / 2 * k2)
            k4 = f(y + h * k3)
            y = y + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
            ys.append(y)
        return torch.stack(ys)
    times, start = torch.linspace(0, 10, 200), torch.tensor([[2.0, 0.0]])
    truth = odeint(lambda y: torch.stack([y[:, 1], -4 * y[:, 0].sin() - 0.2 * y[:, 1]], 1), start, times)[:, 0]
    slope = nn.Sequential(nn.Linear(2, 50), nn.Tanh(), nn.Linear(50, 2))
    optimizer = torch.optim.Adam(slope.parameters(), 1e-2)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 1500)
    for _ in range(1501):
        begin = torch.randint(180, (32,))
        found = odeint(slope, truth[begin], times[:20])
        step(optimizer, (found.transpose(0, 1) - truth[begin[:, None] + torch.arange(20)]).abs().mean())
        schedule.step()
    with torch.no_grad():
        return f"distance {(odeint(slope, start, times)[:, 0] - truth).norm(dim=1).mean():.3f}"


def siamese():
    x, y = clothes("train", 10000)
    new_x, new_y = clothes("t10k", 1000)
    net = nn.Sequential(nn.Conv2d(1, 16, 5, 2), nn.ReLU(), nn.Conv2d(16, 32, 3, 2), nn.ReLU(), nn.Flatten(),
                        nn.Linear(800, 128), nn.ReLU(), nn.Linear(128, 32))
    optimizer = torch.optim.Adam(net.parameters(), 2e-3)
    of_class = [torch.nonzero(y == c)[:, 0] for c in range(10)]
    for _ in range(4):
        other = (y + torch.randint(1, 10, (10000,))) % 10
        draw = [[of_class[c][torch.randint(len(of_class[c]), ()).item()] for c in classes.tolist()]
                for classes in (y, other)]
        mates, strangers = torch.stack(draw[0]), torch.stack(draw[1])
        for i in batches(10000, 128):
            a, m, s = (F.normalize(net(x[j])) for j in (i, mates[i], strangers[i]))
            step(optimizer, (((a - m) ** 2).sum(1) - ((a - s) ** 2).sum(1) + 0.4).relu().mean())
    with torch.no_grad():
        nearest = torch.cdist(F.normalize(net(new_x)), F.normalize(net(x[:100]))).argmin(1)
    return f"accuracy {(y[nearest] == new_y).float().mean():.3f}"


class Block(nn.Sequential):
    def __init__(self, inputs, filters):
        super().__init__(nn.Conv2d(inputs, filters, 3, padding=1), nn.ReLU(),
                         nn.Conv2d(filters, filters, 3, padding=1), nn.ReLU(), nn.BatchNorm2d(filters))


class UNet(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.down1, self.down2, self.bottom = Block(1, n), Block(n, 2 * n), Block(2 * n, 4 * n)
        self.widen2, self.up2 = nn.ConvTranspose2d(4 * n, 2 * n, 2, 2), Block(4 * n, 2 * n)
        self.widen1, self.up1 = nn.ConvTranspose2d(2 * n, n, 2, 2), Block(2 * n, n)
        self.logits = nn.Conv2d(n, 1, 1)

    def forward(self, x):
        skip1 = self.down1(x)
        skip2 = self.down2(F.max_pool2d(skip1, 2))
        x = self.bottom(F.max_pool2d(skip2, 2))
        x = self.up2(torch.cat([self.widen2(x), skip2], 1))
        return self.logits(self.up1(torch.cat([self.widen1(x), skip1], 1)))


def unet():
    n, size = 640, 32
    x = torch.arange(size).float()

    def disc():
        column, row, radius = (torch.rand(n, 1, 1) * size for _ in range(3))
        return (x - column) ** 2 + (x[:, None] - row) ** 2 < (3 + radius * 5 / size) ** 2
    masks = (disc() | disc()).float()[:, None]
    images = masks + 0.7 * torch.randn_like(masks)
    net = UNet(8)
    optimizer = torch.optim.Adam(net.parameters(), 3e-3)
    for _ in range(6):
        for i in batches(512, 32):
            p, y = net(images[i]), masks[i]
            dice = 1 - 2 * (p.sigmoid() * y).sum() / (p.sigmoid().sum() + y.sum())
            step(optimizer, F.binary_cross_entropy_with_logits(p, y) + dice)
    net.eval()
    with torch.no_grad():
        found, true = net(images[512:]) > 0, masks[512:] > 0.5
    overlaps = [((f & t).sum() / (f | t).sum()).item() for f, t in ((found, true), (~found, ~true))]
    return f"IoU {sum(overlaps) / 2:.3f}"


for name in sys.argv[1:]:
    torch.manual_seed(1)
    begin = time.time(), time.process_time()
    result = globals()[name]()
    print(f"{name}: {result}, {time.time() - begin[0]:.2f} s, {time.process_time() - begin[1]:.2f} s of the processor")
