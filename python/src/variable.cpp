// Variable. Python's object is a handle of the cell: as long as it lives, the same cell is the same object.
#include <array>
#include <mutex>
#include <optional>
#include "gradus/function/variable_cell.h"
#include "gradus/graph/context.h"
#include "python/src/binding.h"

namespace gradus::python {
namespace {

Aggregation aggregation_of(std::string_view name) {
  if (name == "none") return Aggregation::none;
  if (name == "mean") return Aggregation::mean;
  if (name == "sum") return Aggregation::sum;
  throw InvalidArgument(text("Variable: aggregation is none, mean or sum, not '", name, "'"));
}

std::shared_ptr<Variable> make_variable(nb::handle initial, std::string name, bool trainable,
                                        std::optional<DType> dtype, std::string_view aggregation) {
  const nb::object value = PyCallable_Check(initial.ptr()) && !may_be_tensor(initial) ? initial() : nb::borrow(initial);
  const Variable made(tensor_of(value, dtype), std::move(name),
                      {.trainable = trainable, .aggregation = aggregation_of(aggregation)});
  return shared_variable(made);
}

/// A value in the dtype of the variable: numbers and lists take it, tensors and arrays have to have it.
Tensor value_for(const Variable& variable, nb::handle value) {
  const bool is_python = is_number(value) || is_sequence(value);
  const Tensor x = is_python ? tensor_of(value, variable.dtype()) : tensor_of(value);
  return is_number(value) ? broadcast_to(x, variable.shape()) : x;
}

nb::object shown(const Variable& self) {
  std::string repr = repr_of("Variable", self.value());
  repr.insert(std::string("<gradus.Variable").size(), text(" '", self.name(), "'"));
  return nb::cast(repr);
}

/// The locks of Variables that are assigned outside of traces, by the cells' addresses. They are recursive: a value
/// that is computed meanwhile may ask Python, which may assign.
std::recursive_mutex& lock_of(const Variable& variable) {
  static auto* const all = new std::array<std::recursive_mutex, 61>;
  return (*all)[std::hash<const void*>()(variable.cell().get()) % all->size()];
}

/// assign(), alone among the threads that assign the Variable: what it reads is what it replaces. It runs without the
/// GIL, since no thread may wait for a lock while it holds the GIL.
template <class Assign> void alone(const Variable& variable, const Assign& assign) {
  if (Context::current()) return assign();
  without_gil([&] {
    const std::lock_guard lock(lock_of(variable));
    assign();
  });
}

/// A method that assigns a value that fits, and gives the Variable itself.
template <class Assign> auto assigning(const Assign& assign) {
  return [assign](nb::handle self, nb::handle value) {
    Variable& variable = nb::cast<Variable&>(self);
    const Tensor fitting = value_for(variable, value);
    alone(variable, [&] { assign(variable, fitting); });
    return nb::borrow(self);
  };
}

void set_item(const Variable& variable, nb::handle key, nb::handle value) {
  const std::vector<Subscript> subscripts = subscripts_of(key);
  const std::optional<Scalar> number = is_number(value) ? std::optional(scalar_of(value)) : std::nullopt;
  const Tensor given = number ? Tensor() : tensor_of(value);
  alone(variable, [&] { assign_item(variable, subscripts, number ? NumberOrTensor(*number) : NumberOrTensor(given)); });
}

/// A Variable as a key of dictionaries: one and the same Variable, which the key keeps.
struct VariableKey {
  std::shared_ptr<Variable> variable;
};

void bind_key(nb::module_& module) {
  nb::class_<VariableKey>(module, "_VariableKey")
      .def("deref", [](const VariableKey& key) { return key.variable; })
      .def(
          "__eq__",
          [](const VariableKey& a, nb::handle b) {
            return nb::isinstance<VariableKey>(b) &&
                   nb::cast<VariableKey&>(b).variable->cell().get() == a.variable->cell().get();
          },
          nb::arg().none())
      .def("__hash__", [](const VariableKey& key) { return std::hash<const void*>()(key.variable->cell().get()); })
      .def("__repr__",
           [](const VariableKey& key) { return text("<reference to Variable '", key.variable->name(), "'>"); });
}

void bind_assignments(nb::class_<Variable>& type) {
  type.def("assign", assigning([](Variable& variable, const auto& value) { variable.assign(value); }), "value"_a,
           "Replaces the value. InvalidArgumentError for another dtype or shape.")
      .def("assign_add", assigning([](Variable& variable, const auto& value) { variable.assign_add(value); }),
           "value"_a, "Adds to the value.")
      .def("assign_sub", assigning([](Variable& variable, const auto& value) { variable.assign_sub(value); }),
           "value"_a, "Subtracts from the value.")
      .def("__setitem__", set_item, nb::arg().none(), nb::arg(),
           "Replaces the elements that NumPy's subscripts name; a number or a tensor broadcasts to them.");
}

void bind_copies(nb::module_& module, nb::class_<Variable>& type) {
  const auto copy = [](const Variable& self) { return shared_variable(Variable(self)); };
  type.def("__copy__", copy)
      .def("__deepcopy__", [copy](const Variable& self, nb::handle) { return copy(self); })
      .def("__reduce__", [module](const Variable& self) {
        const char* const aggregations[] = {"none", "mean", "sum"};
        return nb::make_tuple(module.attr("Variable"),
                              nb::make_tuple(array_of(self.value()), self.name(), self.trainable(), self.dtype(),
                                             aggregations[static_cast<int>(self.aggregation())]));
      });
}

}  // namespace

std::shared_ptr<Variable> shared_variable(const Variable& variable) {
  // The cell's own handle has one address as long as the cell lives, by which nanobind finds Python's object.
  Variables one;
  one.add(variable);
  return {variable.cell(), &one[0]};
}

void bind_variable(nb::module_& module) {
  bind_key(module);
  nb::class_<Variable> type(
      module, "Variable", nb::is_weak_referenceable(),
      "A named cell that holds a tensor; it stands for its value. Its dtype and shape never change.");
  add_tensor_methods(type);
  add_reductions(type);
  type.def(nb::new_(&make_variable), "initial_value"_a, "name"_a = "", "trainable"_a = true, "dtype"_a = nb::none(),
           "aggregation"_a = "none")
      .def_prop_ro("shape", &Variable::shape)
      .def_prop_ro("dtype", &Variable::dtype)
      .def_prop_ro("name", &Variable::name)
      .def_prop_rw("trainable", &Variable::trainable, &Variable::set_trainable,
                   "True if it is listed among trainable variables. Traced functions notice a change.")
      .def(
          "value", [](const Variable& self) { return self.value(); },
          "The value, as a tensor. Tapes and traces note it.")
      .def("read_value", [](const Variable& self) { return self.value(); })
      .def(
          "ref",
          [](Variable& self) {  // the object is the cell's own handle, which does not keep the cell
            return VariableKey{{self.cell()->shared_from_this(), &self}};
          },
          "A key of dictionaries: equal for one and the same variable, which it keeps and deref() gives.")
      .def("__repr__", shown);
  bind_assignments(type);
  bind_copies(module, type);
}

}  // namespace gradus::python
