/// The error of a program that looks at a value which its trace does not know.
#pragma once
#include "gradus/base/error.h"

namespace gradus::detail {

/// A value was asked for while its function is traced, and does not follow from constants alone. A binding tells it
/// from other mistakes, as the function may run op by op instead.
class UnknownValue : public InvalidArgument {
  using InvalidArgument::InvalidArgument;
};

}  // namespace gradus::detail
