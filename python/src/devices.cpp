// Devices, and the sizes of tensors that are open while a function is traced.
#include <functional>
#include "python/src/binding.h"

namespace gradus::python {
namespace {

/// `with gradus.device("cpu:1"):`
struct DeviceBlock {
  Device device;
  std::vector<std::shared_ptr<DeviceScope>> scopes = {};  // one for each `with` that is entered
};

DeviceKind kind_of(const std::string& name) {
  for (const DeviceKind kind : device_kinds)
    if (text(kind) == name) return kind;
  throw InvalidArgument(text("devices: no kind '", name, "': cpu, gpu, tpu or plugin"));
}

Extent extent_from(nb::handle object) {
  return nb::isinstance<Extent>(object) ? nb::cast<Extent>(object) : Extent(extent_of(object));
}

std::int64_t known(const Extent& extent) { return known_extent(static_cast<std::int64_t>(extent)); }

template <class F> nb::object computed(nb::handle a, nb::handle b, const F& f) {
  if (!nb::isinstance<Extent>(b) && !PyIndex_Check(b.ptr())) return nb::borrow(Py_NotImplemented);
  return object_of_extent(static_cast<std::int64_t>(f(extent_from(a), extent_from(b))));
}

template <class F> void bind_operator(nb::class_<Extent>& type, const char* name, const char* reflected, const F& f) {
  type.def(name, [f](nb::handle a, nb::handle b) { return computed(a, b, f); });
  type.def(reflected, [f](nb::handle a, nb::handle b) { return computed(b, a, f); });
}

template <class F> void bind_comparison(nb::class_<Extent>& type, const char* name, const F& f) {
  type.def(
      name,
      [f](nb::handle a, nb::handle b) -> nb::object {
        if (!nb::isinstance<Extent>(b) && !PyIndex_Check(b.ptr())) return nb::borrow(Py_NotImplemented);
        return nb::bool_(f(extent_from(a), extent_from(b)));
      },
      nb::arg().none());
}

nb::object object_of_size(const Size& size) {
  return size.is_open ? nb::cast(Extent(size.value)) : nb::object(nb::int_(size.value));
}

void bind_extent(nb::module_& module) {
  nb::class_<Extent> type(
      module, "Extent",
      "The size of a dimension that is open while a function is traced. It may be computed with, be part "
      "of a shape and a bound of a slice. Reading it as a number fixes it: a program for each size.");
  bind_operator(type, "__add__", "__radd__", [](Extent a, Extent b) { return a + b; });
  bind_operator(type, "__sub__", "__rsub__", [](Extent a, Extent b) { return a - b; });
  bind_operator(type, "__mul__", "__rmul__", [](Extent a, Extent b) { return a * b; });
  bind_operator(type, "__floordiv__", "__rfloordiv__", [](Extent a, Extent b) { return a / b; });
  bind_operator(type, "__mod__", "__rmod__", [](Extent a, Extent b) { return a % b; });
  bind_comparison(type, "__eq__", [](Extent a, Extent b) { return a == b; });
  bind_comparison(type, "__ne__", [](Extent a, Extent b) { return !(a == b); });
  bind_comparison(type, "__lt__", [](Extent a, Extent b) { return a < b; });
  bind_comparison(type, "__le__", [](Extent a, Extent b) { return a <= b; });
  bind_comparison(type, "__gt__", [](Extent a, Extent b) { return a > b; });
  bind_comparison(type, "__ge__", [](Extent a, Extent b) { return a >= b; });
  type.def("__index__", known).def("__int__", known);
  type.def("__float__", [](const Extent& extent) { return static_cast<double>(known(extent)); });
  type.def("__bool__", [](const Extent& extent) { return known(extent) != 0; });
  type.def("__hash__",
           [](const Extent& extent) { return std::hash<std::int64_t>()(static_cast<std::int64_t>(extent)); });
  type.def("__repr__", printed<Extent>);
  module.def(
      "_size", [](nb::handle object) { return object_of_size(size_of(object)); }, "object"_a,
      "The int of an object; an Extent where it is a size that is open while a function is traced.");
  module.def(
      "_sizes",
      [](const ShapeArg& shape) {
        nb::list all;
        for (const std::int64_t size : Shape(shape)) all.append(object_of_size({size, size < any_size}));
        return all;
      },
      "shape"_a, "The sizes of a shape, which may be a tensor, as _size() gives them.");
}

void bind_device_block(nb::module_& module) {
  nb::class_<DeviceBlock>(module, "_DeviceBlock")
      .def("__enter__", [](DeviceBlock& self) { self.scopes.push_back(std::make_shared<DeviceScope>(self.device)); })
      .def("__exit__", [](DeviceBlock& self, const nb::args&) { self.scopes.pop_back(); });
  module.def(
      "device", [](const DeviceArg& device) { return DeviceBlock{device.device()}; }, "device"_a,
      "In a `with` statement: this thread computes on `device`, and new tensors and Variables live there.");
}

}  // namespace

std::int64_t known_extent(std::int64_t size) {
  const Extent extent(size);
  require(!extent.is_symbolic(), "the size ", extent, " is open while this function is traced, so it is no number: ",
          "compute with it as it is (x.shape[0] - 1 is a size, and a bound of slices), make a loop of this length a "
          "tf.while_loop or tf.map_fn, or fix the size");
  return size;
}

void bind_devices(nb::module_& module) {
  nb::class_<Device>(module, "Device", "The name of a device, such as cpu:0.")
      .def(
          "__init__", [](Device* self, const DeviceArg& name) { new (self) Device(name.device()); }, "name"_a)
      .def_prop_ro(
          "kind", [](const Device& self) { return text(self.kind); }, "cpu, gpu, tpu or plugin.")
      .def_prop_ro(
          "index", [](const Device& self) { return self.index; }, "Its number among those of its kind.")
      .def(
          "__eq__", [](const Device& a, nb::handle b) { return is_device(b) && a == DeviceArg{b}.device(); },
          nb::arg().none())
      .def("__hash__", [](const Device& self) { return Placement(self).code(); })
      .def("__str__", printed<Device>)
      .def("__repr__", [](const Device& self) { return text("Device('", self, "')"); })
      .def("__reduce__",
           [](const Device& self) { return nb::make_tuple(nb::type<Device>(), nb::make_tuple(text(self))); });
  bind_device_block(module);
  module.def(
      "devices", [](const std::string& kind) { return devices(kind_of(kind)); }, "kind"_a = "cpu",
      "The physical devices of a kind: cpu, gpu, tpu or plugin.");
  module.def("default_device", default_device, "The device on which new tensors and Variables live.");
  module.def(
      "set_default_device", [](const DeviceArg& device) { set_default_device(device.device()); }, "device"_a,
      "Sets the default device of the whole process.");
  bind_extent(module);
}

}  // namespace gradus::python
