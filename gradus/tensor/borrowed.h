/// Buffers on memory of others.
#pragma once
#include "gradus/base/rooms.h"
#include "gradus/tensor/buffer.h"

namespace gradus {

/// True for the host's memory that a Buffer borrows: it may be read by others and have no room behind it, so nothing is
/// ever written into it, though no other tensor holds the Buffer.
bool is_borrowed(const Buffer& buffer);

}  // namespace gradus
