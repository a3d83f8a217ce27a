/// Subscripts as values: what they hold, and their text.
#include "gradus/graph/subscript.h"
#include "gradus/graph/tensor.h"

namespace gradus {
namespace {

/// end - 1 is arithmetic on a pointer, which some compilers only warn of.
template <class Name> void require_name(Name given, Name wanted, std::string_view text_of_name) {
  require(given == wanted, "a subscript is computed from `", text_of_name,
          "`, which is a name and no number; places before the end are negative: slice(0, -1) leaves out the last one");
}

std::string text_of(const SliceBound& bound) {
  if (bound.is_end()) return "end";
  if (!bound.at()) return "{}";
  return bound.is_symbolic() ? dimension::to_text(*bound.at()) : text(*bound.at());
}

}  // namespace

detail::All all() { return {}; }
detail::NewAxis newaxis() { return {}; }
detail::Ellipsis ellipsis() { return {}; }
detail::End end() { return {}; }

SliceBound::SliceBound(detail::End (*end)()) : is_end_(true) { require_name(end, &gradus::end, "end"); }
Subscript::Subscript(detail::All (*name)()) : kind_(Kind::all) { require_name(name, &gradus::all, "all"); }
Subscript::Subscript(detail::NewAxis (*name)()) : kind_(Kind::new_axis) { require_name(name, &newaxis, "newaxis"); }
Subscript::Subscript(detail::Ellipsis (*name)()) : kind_(Kind::ellipsis) { require_name(name, &ellipsis, "ellipsis"); }
Subscript::Subscript(const Tensor& places) : kind_(Kind::tensor), tensor_(places.node()) { (void)places.spec(); }

Tensor Subscript::tensor() const { return Tensor(tensor_); }

std::string Subscript::to_text() const {
  switch (kind_) {
    case Kind::none: return "{}";
    case Kind::element: return text_of(range_.begin);
    case Kind::all: return "all";
    case Kind::new_axis: return "newaxis";
    case Kind::ellipsis: return "ellipsis";
    case Kind::tensor: return text(tensor().spec());
    case Kind::slice: break;
  }
  return text("slice(", text_of(range_.begin), ", ", text_of(range_.end),
              range_.step == 1 ? std::string() : text(", ", range_.step), ")");
}

std::vector<Subscript> detail::given_subscripts(std::initializer_list<const Subscript*> subscripts) {
  std::size_t count = subscripts.size();
  while (count > 0 && subscripts.begin()[count - 1]->kind() == Subscript::Kind::none) --count;
  std::vector<Subscript> given;
  given.reserve(count);
  for (std::size_t i = 0; i < count; ++i) given.push_back(*subscripts.begin()[i]);
  return given;
}

}  // namespace gradus
