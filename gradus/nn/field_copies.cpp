/// Errors for fields that cannot be copied, and redirection of pointers after a copy.
#include "gradus/nn/field_copies.h"
#include <cstdint>
#include <map>
#include "gradus/base/type_name.h"

namespace gradus::detail {

void fail_copy(const char* type) {
  throw InvalidArgument(
      text("copying a model: a part of it, ", type_name(type),
           ", cannot be copied; hold layers directly, in std::optional, std::vector or "
           "std::shared_ptr (of a class with virtual functions: give it std::shared_ptr<Base> clone() "
           "const), or pass the model by reference or std::move"));
}

void check_apart(const char* type, const std::function<void(const FieldVisitor&)>& visit_original,
                 const std::function<void(const FieldVisitor&)>& visit_copy) {
  std::map<const void*, std::string> own;  // layers and cells, by name
  const auto ignored = [](const std::string&, const Module&) {};
  visit_original(
      {.layer = [&](const std::string& name, const Module& module) { own.emplace(&module.layer_behind(), name); },
       .variable = [&](const std::string& name, const Variable& each) { own.emplace(each.cell().get(), name); },
       .borrowed = ignored});
  const auto check = [&](const std::string& name, const void* at) {
    const auto known = own.find(at);
    require(known == own.end(), "copying a model of ", type_name(type), ": `", name, "` of the copy would be `",
            known == own.end() ? "" : known->second,
            "` of the original: a pointer leads there; hold layers directly, in std::optional, std::vector or in a "
            "std::shared_ptr that is a field (not const), give the class a copy constructor that copies what it points "
            "to, or pass the model by reference or std::move");
  };
  const auto check_layer = [&](const std::string& name, const Module& module) { check(name, &module.layer_behind()); };
  visit_copy({.layer = check_layer,
              .variable = [&](const std::string& name, const Variable& each) { check(name, each.cell().get()); },
              .borrowed = check_layer});
}

const void* FieldCopies::moved(const void* at) const {
  for (const Moved& range : ranges_) {
    const auto offset = reinterpret_cast<std::uintptr_t>(at) - reinterpret_cast<std::uintptr_t>(range.from);
    if (offset < range.bytes) return static_cast<const char*>(range.to) + offset;
  }
  return at;
}

}  // namespace gradus::detail
