// Nests of Python.
#include "python/src/nest.h"
#include "python/src/binding.h"

namespace gradus::python {
namespace {

/// Nests are walked by calls in C++: a nest that contains itself has no end.
constexpr int deepest = 200;

bool is_named_tuple(nb::handle tuple) { return !PyTuple_CheckExact(tuple.ptr()) && nb::hasattr(tuple, "_fields"); }
bool is_dataclass(nb::handle object) {
  return !PyType_Check(object.ptr()) &&
         nb::hasattr(nb::handle(reinterpret_cast<PyObject*>(Py_TYPE(object.ptr()))), "__dataclass_fields__");
}

/// Keys of a dict: sorted where they can be compared, else as they were inserted.
nb::list keys_of(nb::handle dict) {
  nb::list keys = nb::steal<nb::list>(PyDict_Keys(dict.ptr()));
  if (PyList_Sort(keys.ptr()) != 0) PyErr_Clear(), keys = nb::steal<nb::list>(PyDict_Keys(dict.ptr()));
  return keys;
}

nb::object fields_of(nb::handle object) {
  return nb::handle(reinterpret_cast<PyObject*>(Py_TYPE(object.ptr()))).attr("__dataclass_fields__");
}

/// The address of a class, which tells classes of one name apart.
std::string spelled_class(nb::handle object) {
  return text(class_of(object), '@', reinterpret_cast<std::uintptr_t>(Py_TYPE(object.ptr())));
}

std::string spelled(nb::handle key) {
  const nb::object repr = nb::steal(PyObject_Repr(key.ptr()));
  if (!repr.is_valid()) throw nb::python_error();
  return nb::cast<std::string>(repr);
}

void require_depth(int depth) {
  if (depth > deepest)
    throw nb::value_error("a nest of more than 200 containers within each other: one that contains itself has no end");
}

class Mapping {
 public:
  explicit Mapping(const LeafMap& map) : map_(map) {}
  nb::object of(nb::handle nest) {
    require_depth(++depth_);
    nb::object made = made_of(nest);
    --depth_;
    return made;
  }

 private:
  nb::object made_of(nb::handle nest) {
    if (PyList_Check(nest.ptr())) return list_of(nest);
    if (PyTuple_Check(nest.ptr())) return tuple_of(nest);
    if (PyDict_Check(nest.ptr())) return dict_of(nest);
    return is_dataclass(nest) ? dataclass_of(nest) : map_(nest);
  }
  nb::list list_of(nb::handle nest) {
    nb::list made;
    for (const nb::handle item : nb::borrow<nb::sequence>(nest)) made.append(of(item));
    return made;
  }
  nb::object tuple_of(nb::handle nest) {
    const nb::list items = list_of(nest);
    if (is_named_tuple(nest)) return nest.attr("_make")(items);
    return nb::steal(PyList_AsTuple(items.ptr()));
  }
  nb::object dict_of(nb::handle nest) {
    nb::object made =
        PyDict_CheckExact(nest.ptr()) ? nb::steal(PyDict_Copy(nest.ptr())) : nb::object(nest.attr("copy")());
    for (const nb::handle key : keys_of(nest)) made[key] = of(nb::object(nest[key]));
    return made;
  }
  nb::object dataclass_of(nb::handle nest) {
    const nb::object made = nb::module_::import_("copy").attr("copy")(nest);
    for (const nb::handle name : fields_of(nest)) {
      const nb::object value = of(nb::object(nb::getattr(nest, name)));
      if (PyObject_GenericSetAttr(made.ptr(), name.ptr(), value.ptr()) != 0) throw nb::python_error();
    }
    return made;
  }
  const LeafMap& map_;
  int depth_ = 0;
};

class Walk {
 public:
  Walk(std::string* structure, const std::function<void(nb::handle)>& visit) : structure_(structure), visit_(visit) {}
  void of(nb::handle nest) {
    require_depth(++depth_);
    walk(nest);
    --depth_;
  }

 private:
  void walk(nb::handle nest) {
    if (nb::isinstance<Tensor>(nest)) return visit_(nest);
    if (PyList_Check(nest.ptr())) return items('[', nest);
    if (PyTuple_Check(nest.ptr())) {
      if (is_named_tuple(nest)) write(spelled_class(nest));
      return items('(', nest);
    }
    if (PyDict_Check(nest.ptr())) return dict(nest);
    if (is_dataclass(nest)) return dataclass(nest);
    visit_(nest);
  }
  void items(char opening, nb::handle nest) {
    write(opening);
    for (const nb::handle item : nb::borrow<nb::sequence>(nest)) of(item), write(',');
    write(')');
  }
  void dict(nb::handle nest) {
    write('{');
    for (const nb::handle key : keys_of(nest)) {
      if (structure_) *structure_ += spelled(key) + ':';
      of(nb::object(nest[key]));
      write(',');
    }
    write('}');
  }
  void dataclass(nb::handle nest) {
    if (structure_) *structure_ += spelled_class(nest);
    write('<');
    for (const nb::handle name : fields_of(nest)) of(nb::object(nb::getattr(nest, name))), write(',');
    write('>');
  }
  void write(const auto& part) {
    if (structure_) *structure_ += part;
  }
  std::string* structure_;
  const std::function<void(nb::handle)>& visit_;
  int depth_ = 0;
};

}  // namespace

nb::object map_leaves(nb::handle nest, const LeafMap& map) { return Mapping(map).of(nest); }

void for_each_leaf(nb::handle nest, std::string* structure, const std::function<void(nb::handle leaf)>& visit) {
  Walk(structure, visit).of(nest);
}

}  // namespace gradus::python
