/// The error for ONNX files that ask for what is not to be had here.
#pragma once
#include "gradus/base/error.h"

namespace gradus::onnx {

/// An op, an element type or a kind of value that Gradus has not. Nothing is wrong with the file.
class Unsupported : public Error {
 public:
  using Error::Error;
};

}  // namespace gradus::onnx
