/// The error for ONNX files with unsupported parts.
#pragma once
#include "gradus/base/error.h"

namespace gradus::onnx {

/// An op, an element type or a kind of value that Gradus does not have. Nothing is wrong with the file.
class Unsupported : public Error {
 public:
  using Error::Error;
};

}  // namespace gradus::onnx
