/// Reading gzip, which is recognised by its first two bytes, not by a name. Several members in a row are one stream.
#pragma once
#include <memory>
#include "gradus/formats/byte_stream.h"

namespace gradus {

/// The decompressed stream if `bytes` begin as gzip does, else `bytes` themselves. Reading throws DataError, with the
/// place, if the data is damaged, is cut off, or goes on behind the last member.
std::unique_ptr<ByteStream> gunzip_if_compressed(std::unique_ptr<ByteStream> bytes);

}  // namespace gradus
