/// Errors that tell the place first: the file, then the graph, node or tensor, then what is wrong there.
#pragma once
#include <new>
#include <stdexcept>
#include <string>
#include "gradus/onnx/unsupported.h"

namespace gradus::onnx {

/// The result of `work`. Its errors get `place()` in front; an error that is not about the model keeps its type.
template <class Place, class Work> decltype(auto) placed(const Place& place, const Work& work) {
  // One line: a name with a line break must not look like a message of its own.
  const auto said = [&](const Error& error) { return place() + ": " + printable(error.what(), true); };
  try {
    return work();
  } catch (const Unsupported& error) { throw Unsupported(said(error)); } catch (const ResourceExhausted& error) {
    throw ResourceExhausted(said(error));
  } catch (const Error& error) { throw DataError(said(error)); } catch (const std::bad_alloc&) {
    throw ResourceExhausted(text(place(), ": no memory for it"));
  } catch (const std::length_error&) { throw ResourceExhausted(text(place(), ": no memory for it")); }
}

/// A name of the file in a message.
inline std::string named(const std::string& name) { return '`' + printable(name, true) + '`'; }

}  // namespace gradus::onnx
