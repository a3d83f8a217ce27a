// Calls of functions of Python, and the objects that they count by identity.
#include "python/src/calls.h"
#include <unordered_map>
#include "python/src/binding.h"
#include "python/src/nest.h"

namespace gradus::python {
namespace {

using erased::Called;

// ---- objects by identity

/// Numbers that tell objects apart, as addresses do not: an object may die, and another one get its address.
class Identities {
 public:
  std::uint64_t of(nb::handle object) {
    if (seen_.size() >= next_sweep_) sweep();
    Known& known = seen_[object.ptr()];
    if (known.reference.is_valid() && is_it(known, object)) return known.number;
    known = {nb::steal(PyWeakref_NewRef(object.ptr(), nullptr)), next_++};
    if (!known.reference.is_valid()) {  // it has no weak references: kept for ever, so that its address stays its own
      PyErr_Clear();
      known.reference = nb::borrow(object);
    }
    return known.number;
  }

 private:
  struct Known {
    nb::object reference;
    std::uint64_t number = 0;
  };
  static bool is_it(const Known& known, nb::handle object) {
    return known.reference.ptr() == object.ptr() || nb::object(known.reference()).ptr() == object.ptr();
  }
  void sweep() {
    std::erase_if(seen_, [](const auto& entry) {
      const nb::object& reference = entry.second.reference;
      return PyWeakref_CheckRef(reference.ptr()) && nb::object(reference()).is_none();
    });
    next_sweep_ = 2 * seen_.size() + 64;
  }
  std::unordered_map<const PyObject*, Known> seen_;
  std::uint64_t next_ = 1;
  std::size_t next_sweep_ = 64;
};

/// The identities that all functions share; under the GIL.
Identities& identities() {
  static auto* const all = new Identities;
  return *all;
}

// ---- arguments

bool is_array(nb::handle object) {
  return !is_number(object) &&
         (nb::isinstance<Loss>(object) || (may_be_tensor(object) && !PyRange_Check(object.ptr())));
}

bool is_by_value(nb::handle leaf) {
  PyObject* const o = leaf.ptr();
  return leaf.is_none() || PyBool_Check(o) || PyLong_CheckExact(o) || PyFloat_Check(o) || PyComplex_CheckExact(o) ||
         PyUnicode_CheckExact(o) || PyBytes_CheckExact(o) || PyRange_Check(o) || PySlice_Check(o) ||
         nb::isinstance<Extent>(leaf);
}

/// True for a functools.partial without keywords.
bool is_partial(nb::handle leaf) {
  static PyObject* const type = nb::object(nb::module_::import_("functools").attr("partial")).release().ptr();
  return PyObject_TypeCheck(leaf.ptr(), reinterpret_cast<PyTypeObject*>(type)) &&
         nb::len(nb::object(leaf.attr("keywords"))) == 0;
}

std::string spelled(nb::handle object) {
  const nb::object shown = nb::steal(PyObject_Repr(object.ptr()));
  if (!shown.is_valid()) throw nb::python_error();
  return nb::cast<std::string>(shown);
}

}  // namespace

bool is_traced(nb::handle leaf) {
  if (nb::isinstance<Tensor>(leaf)) return true;
  return !nb::isinstance<Variable>(leaf) && is_array(leaf);
}

nb::handle method_class() {
  static PyObject* const found = nb::object(nb::module_::import_("types").attr("MethodType")).release().ptr();
  return found;
}

void Call::spell(nb::handle leaf) {
  if (nb::isinstance<Variable>(leaf)) {
    key += text('V', reinterpret_cast<std::uintptr_t>(nb::cast<Variable&>(leaf).cell().get()));
  } else if (leaf.type().is(method_class())) {  // made anew each time that it is named
    spell(leaf.attr("__func__"));
    key += '.';
    spell(leaf.attr("__self__"));
  } else if (is_partial(leaf)) {  // as a method: a tf.function of an object is one
    spell(leaf.attr("func"));
    const nb::object bound = leaf.attr("args");
    for (const nb::handle each : bound) {
      key += '.';
      spell(each);
    }
  } else if (is_by_value(leaf)) {
    const std::string value = spelled(leaf);
    key += value;
    if (is_number(leaf) && !PyBool_Check(leaf.ptr())) numbers += value + ' ';
  } else {
    key += text(class_of(leaf), '#', identities().of(leaf));
  }
}

nb::object Call::apply(nb::handle f, In in) const {
  std::size_t next = 0;
  const nb::object given = map_leaves(arguments, [&](nb::handle leaf) -> nb::object {
    return is_traced(leaf) ? nb::cast(in[next++]) : nb::borrow(leaf);
  });
  return f(*nb::borrow<nb::tuple>(given[0]), **nb::borrow<nb::dict>(given[1]));
}

Call call_of(nb::handle args, nb::handle kwargs) {
  Call call{.arguments = nb::make_tuple(nb::borrow(args), nb::borrow(kwargs))};
  for_each_leaf(call.arguments, &call.key, [&](nb::handle leaf) {
    if (!is_traced(leaf)) return call.spell(leaf);
    call.key += 'T';
    call.tensors.push_back(tensor_of(leaf));
  });
  return call;
}

// ---- results

namespace {

/// Stands for a tensor in the nest that stays with a program.
PyObject* place_of_tensor() {
  static PyObject* const place = nb::module_::import_("builtins").attr("object")().release().ptr();
  return place;
}

/// A leaf of a result is a tensor if it is one, or a number, as in TensorFlow.
bool is_result(nb::handle leaf) { return is_tensor(leaf) || is_number(leaf) || may_be_tensor(leaf); }

}  // namespace

Called called_with(nb::handle result) {
  Called called;
  const auto taken = [&](nb::handle leaf) {
    called.tensors.push_back(tensor_of(leaf));
    return nb::borrow(place_of_tensor());
  };
  const nb::object nest = map_leaves(result, [&](nb::handle leaf) -> nb::object {
    if (is_gradients(leaf))
      return map_leaves(list_of_gradients(leaf),
                        [&](nb::handle each) -> nb::object { return each.is_none() ? nb::none() : taken(each); });
    return is_result(leaf) ? taken(leaf) : nb::borrow(leaf);
  });
  for_each_leaf(nest, &called.lengths, [](nb::handle) {});
  called.structure = std::make_shared<const Held>(nest);
  return called;
}

nb::object nest_of_results(const std::shared_ptr<const void>& structure,
                           const std::function<nb::object(std::size_t)>& give) {
  std::size_t next = 0;
  return map_leaves(static_cast<const Held*>(structure.get())->get(), [&](nb::handle leaf) -> nb::object {
    return leaf.ptr() == place_of_tensor() ? give(next++) : nb::borrow(leaf);
  });
}

}  // namespace gradus::python
