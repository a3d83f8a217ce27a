"""The report of a training in a browser: no script fails, curves are drawn, and nothing is asked of a network.

usage: report_in_browser.py GRADUS
Needs chromium, which `tools/setup.sh full` installs.
"""
import pathlib
import re
import shutil
import struct
import subprocess
import sys
import tempfile
import zlib

CONFIGURATION = """
[data]
train_images = "train_images"
train_labels = "train_labels"
test_images = "test_images"
test_labels = "test_labels"
class_names = ["<top>", "upper & middle", "lower", "bottom"]
[[layers]]
type = "flatten"
[[layers]]
type = "dense"
units = 4
[train]
epochs = 6
batch_size = 32
validate_each_epoch = true
"""
CURVES = {"training": (0x25, 0x63, 0xEB), "test": (0xDC, 0x26, 0x26)}  # colours


def write_idx(path, sizes, data):
    path.write_bytes(struct.pack(f">HBB{len(sizes)}I", 0, 8, len(sizes), *sizes) + bytes(data))


def write_images(folder, name, count):
    """8 x 8 images whose brightest pair of rows is their label."""
    pixels, labels = [], []
    for i in range(count):
        labels.append(i * 7 % 4)
        pixels += [(200 if p // 16 == labels[-1] else 30) + (i * 31 + p * 17) % 50 for p in range(64)]
    write_idx(folder / f"{name}_images", [count, 8, 8], pixels)
    write_idx(folder / f"{name}_labels", [count], labels)


def browse(browser, profile, report, *more):
    """What the browser says of a page, its console in stderr."""
    return subprocess.run(
        [browser, "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars",
         "--enable-logging=stderr", "--window-size=1240,1400", "--virtual-time-budget=2000",
         # Whatever is asked of a network fails, and says so in the console.
         "--host-resolver-rules=MAP * ~NOTFOUND", f"--user-data-dir={profile}", *more, report.as_uri()],
        capture_output=True, text=True, timeout=120, check=True)


def pixels_of(path):
    """The colours of a PNG without interlacing, each with how often it is there."""
    data, at, packed = path.read_bytes(), 8, b""
    while at < len(data):
        size, kind = struct.unpack(">I4s", data[at:at + 8])
        if kind == b"IHDR":
            width, height, depth, colour, _, _, interlace = struct.unpack(">IIBBBBB", data[at + 8:at + 8 + size])
        if kind == b"IDAT":
            packed += data[at + 8:at + 8 + size]
        at += size + 12
    assert (depth, interlace) == (8, 0) and colour in (2, 6), "another kind of PNG"
    step = 3 if colour == 2 else 4
    raw, counts, before = zlib.decompress(packed), {}, bytes(width * step)
    for row in range(height):
        start = row * (width * step + 1)
        method, line = raw[start], bytearray(raw[start + 1:start + 1 + width * step])
        for i in range(len(line)):
            left = line[i - step] if i >= step else 0
            up, corner = before[i], before[i - step] if i >= step else 0
            if method == 1:
                line[i] = (line[i] + left) & 255
            elif method == 2:
                line[i] = (line[i] + up) & 255
            elif method == 3:
                line[i] = (line[i] + (left + up) // 2) & 255
            elif method == 4:
                guess = left + up - corner
                nearest = min((left, up, corner), key=lambda value: abs(guess - value))
                line[i] = (line[i] + nearest) & 255
        for i in range(0, len(line), step):
            pixel = tuple(line[i:i + 3])
            counts[pixel] = counts.get(pixel, 0) + 1
        before = bytes(line)
    return counts


def check(condition, what, shown=""):
    if not condition:
        sys.exit(f"report_in_browser: {what}\n{shown}")


def main():
    browser = shutil.which("chromium") or shutil.which("chromium-browser")
    check(browser, "chromium is missing; tools/setup.sh full installs it")
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        write_images(folder, "train", 256)
        write_images(folder, "test", 64)
        (folder / "config.toml").write_text(CONFIGURATION)
        run = folder / "run"
        subprocess.run([sys.argv[1], "train", folder / "config.toml", "--output", run, "--quiet"], check=True,
                       stdout=subprocess.DEVNULL)
        report = run / "report.html"
        check(not re.search(r"""(src|href)\s*=\s*["'](?!data:)""", report.read_text()), "it refers to something outside")

        page = browse(browser, folder / "profile", report, "--dump-dom")
        console = [line for line in page.stderr.splitlines() if ":CONSOLE" in line]
        check(not console, "the console says something", "\n".join(console))
        opening = re.search(r"<html[^>]*>", page.stdout)
        check(opening and 'data-ready="6"' in opening[0] and "data-error" not in opening[0],
              "its script did not come to its end, or found other than 6 curves", opening and opening[0])
        curves = re.findall(r'<polyline class="curve"[^>]*points="([^"]*)"', page.stdout)
        check(len(curves) == 6 and all(len(points.split()) == 6 for points in curves), "curves lack points", curves)
        check(page.stdout.count("data:image/png;base64,") == 18, "there are not 18 pictures of worst examples")
        check("&lt;top&gt;" in page.stdout and "upper &amp; middle" in page.stdout, "names of classes are not escaped")

        browse(browser, folder / "profile", report, f"--screenshot={folder / 'shot.png'}")
        counts = pixels_of(folder / "shot.png")
        for curve, colour in CURVES.items():
            check(counts.get(colour, 0) > 300, f"the curves of {curve} are not drawn: {counts.get(colour, 0)} pixels")
        check_profile(browser, folder)


def check_profile(browser, folder):
    """The pictures of a profile are drawn without scripts, and each part has its numbers."""
    run = folder / "profiled"
    subprocess.run([sys.argv[1], "profile", folder / "config.toml", "--steps", "20", "--output", run], check=True,
                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    report = run / "report.html"
    without_scripts = run / "without_scripts.html"
    without_scripts.write_text(re.sub(r"<script>.*?</script>", "", report.read_text(), flags=re.S))
    page = browse(browser, folder / "profile", report, "--dump-dom")
    check("data-error" not in re.search(r"<html[^>]*>", page.stdout)[0], "the script of a profile fails")
    pictures = re.findall(r'<svg class="profile"[^>]*aria-label="([^"]*)"', page.stdout)
    check(pictures == ["parts of the time", "layers", "timeline", "memory"], "pictures are missing", pictures)
    rectangles, titled = page.stdout.count("<rect"), page.stdout.count("<title>") - 1  # one is the page's
    check(rectangles == titled, f"{rectangles} parts, {titled} with numbers")
    browse(browser, folder / "profile", without_scripts, f"--screenshot={folder / 'profile.png'}")
    counts = pixels_of(folder / "profile.png")
    for what, colour in {"compute": (0x16, 0xA3, 0x4A), "weights": (0x25, 0x63, 0xEB)}.items():
        check(counts.get(colour, 0) > 100, f"{what} is not drawn: {counts.get(colour, 0)} pixels")


if __name__ == "__main__":
    main()
