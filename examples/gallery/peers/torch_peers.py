"""Some of the gallery's programs in PyTorch: the same data, networks, optimizers and numbers of steps, for the table of README.md.

    python3 torch_peers.py NAME...      prints the result and the seconds without the import of PyTorch
"""
import math
import sys
import time

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F


def batches(n, size):
    return torch.randperm(n).split(size)


def step(optimizer, loss):
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss.item()


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


for name in sys.argv[1:]:
    torch.manual_seed(1)
    begin = time.time(), time.process_time()
    result = globals()[name]()
    print(f"{name}: {result}, {time.time() - begin[0]:.2f} s, {time.process_time() - begin[1]:.2f} s of the processor")
