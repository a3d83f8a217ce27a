/// Arguments of functions that are not generated, with the checks and messages of those that are.
#pragma once
#include "python/src/generated.h"

namespace gradus::python {

/// The object as T; a TypeError names the place and the class that was given.
template <class T> T asked(nb::handle given, const Place& place) {
  if (Argument<T>::fit(given.ptr()) < 0)
    refuse_type(place, text("expected ", Argument<T>::name, ", got ", class_of(given)));
  return Argument<T>::get(given.ptr(), place);
}

}  // namespace gradus::python
