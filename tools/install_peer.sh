#!/bin/sh
# Installs one of the peers of bench/, or TensorBoard and its profiler for the tests, into an environment of its own:
# tools/install_peer.sh jax|tf|torch|tensorboard|xprof
# PyTorch's plain package brings several GB of GPU libraries along, so it is installed only when asked for.
set -eu
cd "$(dirname "$0")/.."

peer=${1-}
case $peer in
  jax) packages="jax optax keras" ;;
  tf) packages="tensorflow-cpu" ;;
  torch) packages="torch torchvision numpy keras" ;;
  tensorboard) packages="tensorboard numpy pillow" ;;
  xprof) packages="xprof" ;;
  *) echo "install_peer: jax, tf, torch, tensorboard or xprof, not '$peer'" >&2; exit 2 ;;
esac
environment=.venv-$peer
[ ! -e "$environment/installed" ] || exit 0
echo "install_peer: installing $packages into $environment"
python3 -m venv "$environment"
"$environment/bin/pip" install --quiet $packages
touch "$environment/installed"
