#!/bin/sh
# Installs one of the peers of bench/ into an environment of its own: tools/install_peer.sh jax|tf|torch
# PyTorch's plain package brings several GB of GPU libraries along, so it is installed only when asked for.
set -eu
cd "$(dirname "$0")/.."

peer=${1-}
case $peer in
  jax) packages="jax optax" ;;
  tf) packages="tensorflow-cpu" ;;
  torch) packages="torch numpy" ;;
  *) echo "install_peer: jax, tf or torch, not '$peer'" >&2; exit 2 ;;
esac
environment=.venv-$peer
[ ! -e "$environment/installed" ] || exit 0
echo "bench: installing $packages into $environment"
python3 -m venv "$environment"
"$environment/bin/pip" install --quiet $packages
touch "$environment/installed"
