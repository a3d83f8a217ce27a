// Models whose layers are attributes of an object of Python, and copies of layers.
//
// The object holds the handle of a layer, PythonNet, which holds the object, since other models may hold that layer
// when Python has dropped the object. Python's collector sees the circle as long as no other model holds the layer.
#include "python/src/binding.h"
#include "python/src/generated.h"
#include "python/src/held_functions.h"
#include "python/src/pipeline.h"

namespace gradus::python {
namespace {

/// The layer of a model of Python. `_fields` of the object lists its layers, Variables and plain values by name,
/// `_run_on` calls it with a list of tensors.
class PythonNet final : public erased::NetLayer {
 public:
  explicit PythonNet(nb::handle object) : object_(nb::borrow(object)) {}
  /// A copy of `other` that has this object.
  PythonNet(const PythonNet& other, nb::handle object) : NetLayer(other), object_(nb::borrow(object)) {}

  std::shared_ptr<Layer> clone() const override;
  std::string struct_name() const override {
    return in_python([this] { return object_ ? class_of(object()) : std::string("model"); });
  }
  void visit(const erased::FieldVisitor& visitor) const override {
    in_python([&] {
      if (!object_) return;
      for (const nb::handle field : nb::object(object().attr("_fields")())) {
        const std::string name = nb::cast<std::string>(field[0]);
        const nb::object value = field[1];
        if (nb::isinstance<Module>(value)) visitor.layer(name, nb::cast<const Module&>(value));
        else if (nb::isinstance<Variable>(value)) visitor.variable(name, nb::cast<const Variable&>(value));
        else if (value.is_none()) visitor.other(name);
        else visitor.plain(name, nb::cast<std::string>(value));
      }
    });
  }
  void add_parts_to(Structure& structure) const override {
    structure.note_model();
    add_own_to(structure);
    visit({.layer = [&](const std::string&, const Module& layer) { structure.add(layer); },
           .variable = [&](const std::string&, const Variable& variable) { structure.add(variable); }});
  }
  Tensor call(const Tensor& x) const override {
    return in_python([&] { return tensor_of(called(In(&x, 1))); });
  }
  void run_on(In inputs) const override {
    in_python([&] { called(inputs); });
  }
  void run_for(std::span<const Spec> inputs, CallMode mode) override {
    adopt_fields();
    NetLayer::run_for(inputs, mode);
  }
  /// Names the layers by the fields that the object has now.
  void adopt() { adopt_fields(); }
  /// The GIL is held.
  nb::handle object() const { return object_.get(); }
  void drop_object() { object_ = Held(); }

 private:
  nb::object called(In inputs) const {
    require(static_cast<bool>(object_), "a model was called that Python has dropped");
    return object().attr("_run_on")(list_of(inputs));
  }
  Held object_;
};

struct PythonModel : Module {
  explicit PythonModel(std::shared_ptr<PythonNet> net) : Module(std::move(net)) {}
  std::shared_ptr<PythonNet> net() const { return std::static_pointer_cast<PythonNet>(shared_layer()); }
  /// True if no other model holds the layer.
  bool holds_alone() const { return shared_layer().use_count() == 1; }
};

/// The attributes of `from`, copied, but how it is trained.
void copy_attributes(nb::handle from, nb::handle to) {
  const nb::object attributes = from.attr("__dict__").attr("copy")();
  for (const char* const own : {"_training", "_functions"}) attributes.attr("pop")(own, nb::none());
  to.attr("__dict__").attr("update")(nb::module_::import_("copy").attr("deepcopy")(attributes));
}

std::shared_ptr<Layer> PythonNet::clone() const {
  return in_python([this] {
    const nb::object made = nb::inst_alloc(object().type());
    const auto copy = std::make_shared<PythonNet>(*this, made);
    new (nb::inst_ptr<PythonModel>(made)) PythonModel(copy);
    nb::inst_mark_ready(made);
    copy_attributes(object(), made);
    return copy;
  });
}

/// One call: `body` receives the tensors as the model computes with them.
nb::object run(const PythonModel& model, nb::handle body, const TensorsArg& given, std::optional<bool> training) {
  const std::shared_ptr<PythonNet> net = model.net();
  std::optional<erased::ModeScope> mode;
  if (training) mode.emplace(*training ? CallMode::training : CallMode::inference);
  if (!net->is_built()) net->adopt();
  const Tensors inputs = given.tensors();
  const erased::NetCall call(model, net);
  std::vector<Spec> specs;
  nb::list computed;
  for (const Tensor& x : inputs) computed.append(net->computed(x)), specs.push_back(x.spec());
  nb::object result = body(computed);
  call.finish(std::move(specs));
  return result;
}

// ---- the collector's view

int visit_model(PyObject* self, visitproc visit, void* arg) {
  const auto of_layers = reinterpret_cast<traverseproc>(
      PyType_GetSlot(reinterpret_cast<PyTypeObject*>(nb::type<Module>().ptr()), Py_tp_traverse));
  if (const int stopped = of_layers(self, visit, arg)) return stopped;
  if (!nb::inst_ready(self)) return 0;
  const PythonModel& model = *nb::inst_ptr<PythonModel>(self);
  if (!model.is_empty() && model.holds_alone()) Py_VISIT(model.net()->object().ptr());
  return 0;
}

int clear_model(PyObject* self) {
  if (nb::inst_ready(self) && !nb::inst_ptr<PythonModel>(self)->is_empty())
    nb::inst_ptr<PythonModel>(self)->net()->drop_object();
  return 0;
}

const PyType_Slot model_slots[] = {{Py_tp_traverse, reinterpret_cast<void*>(visit_model)},
                                   {Py_tp_clear, reinterpret_cast<void*>(clear_model)},
                                   {0, nullptr}};

/// The functions that a layer keeps, an attribute of its object. They are seen where nothing else has the layer or
/// them.
struct LayerFunctions {
  struct One {
    std::weak_ptr<PyObject> object;
    long uses;  // by the layer
  };
  std::weak_ptr<Layer> layer;
  std::vector<One> all;
};

int visit_functions(PyObject* self, visitproc visit, void* arg) {
  Py_VISIT(Py_TYPE(self));
  if (!nb::inst_ready(self)) return 0;
  const LayerFunctions& functions = *nb::inst_ptr<LayerFunctions>(self);
  if (functions.layer.use_count() != 1) return 0;
  for (const LayerFunctions::One& each : functions.all) {
    if (each.object.use_count() != each.uses) continue;
    PyObject* const object = each.object.lock().get();  // it lives by the layer
    Py_VISIT(object);
  }
  return 0;
}

int clear_functions(PyObject* self) {
  if (nb::inst_ready(self)) nb::inst_ptr<LayerFunctions>(self)->all.clear();  // the layer ends with its object
  return 0;
}

const PyType_Slot function_slots[] = {{Py_tp_traverse, reinterpret_cast<void*>(visit_functions)},
                                      {Py_tp_clear, reinterpret_cast<void*>(clear_functions)},
                                      {0, nullptr}};

// ---- layers

/// A copy of a layer, with variables of its own and the attributes that Python gave it.
nb::object copied(nb::handle layer) {
  nb::object made = nb::inst_alloc(layer.type());
  nb::inst_copy(made, layer);
  copy_attributes(layer, made);
  return made;
}

/// A copy of a model is made by its layer, which makes the object.
nb::object copied_model(const PythonModel& model) {
  const std::shared_ptr<Layer> copy = without_gil([&] { return model.net()->clone(); });
  return nb::borrow(static_cast<const PythonNet&>(*copy).object());
}

}  // namespace

void show_functions(PyObject* self, const HeldObjects& made) {
  if (made.all().empty() || !nb::isinstance<Module>(self)) return;
  struct ModuleOfPython : Module {
    static std::weak_ptr<Layer> layer_of(const Module& module) { return (module.*&ModuleOfPython::shared_layer)(); }
  };
  LayerFunctions functions{.layer = ModuleOfPython::layer_of(*nb::inst_ptr<Module>(self)), .all = {}};
  for (const std::weak_ptr<PyObject>& each : made.all())
    if (each.use_count() > 0) functions.all.push_back({each, each.use_count()});
  nb::setattr(self, "_functions", nb::cast(std::move(functions)));
}

void bind_models(nb::module_& module) {
  nb::class_<LayerFunctions>(module, "_LayerFunctions", nb::type_slots(function_slots));
  nb::class_<Module> base = nb::borrow<nb::class_<Module>>(module.attr("nn").attr("Module"));
  base.def("__copy__", copied).def("__deepcopy__", [](nb::handle self, nb::handle) { return copied(self); });
  base.def_prop_rw(
      "trainable", [](const Module& layer) { return layer.layer_behind().is_trainable(); },
      [](Module& layer, bool trainable) { layer.set_trainable(trainable); },
      "False if it is frozen, with all layers within: set it to freeze or unfreeze.");
  base.def_prop_ro("built", [](const Module& layer) { return layer.is_built(); }, "True once it has its variables.");
  base.def("_input_spec", [](const Module& layer) { return layer.layer_behind().input(); });
  nb::class_<PythonModel, Module>(module, "_Model", nb::type_slots(model_slots), nb::dynamic_attr(),
                                  nb::is_weak_referenceable())
      .def("__init__",
           [](nb::handle_t<PythonModel> self) {
             new (nb::inst_ptr<PythonModel>(self)) PythonModel(std::make_shared<PythonNet>(self));
           })
      .def("__copy__", copied_model)
      .def("__deepcopy__", [](const PythonModel& self, nb::handle) { return copied_model(self); })
      .def("_run", run, "body"_a, "inputs"_a, "training"_a.none());
}

}  // namespace gradus::python
