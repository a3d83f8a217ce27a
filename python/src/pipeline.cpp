// Data sets: chains of stages, and passes over them. Functions of Python take and give lists of tensors, the fields of
// an element; nests are the package's matter. They are traced and run compiled, so that Python is asked no more while
// elements are made, but for generators, interleave and reduce_func of group_by_window.
#include "python/src/pipeline.h"
#include <mutex>
#include <set>
#include "python/src/binding.h"

namespace gradus::python {

nb::list list_of(In fields) {
  nb::list all;
  for (const Tensor& each : fields) all.append(each);
  return all;
}

Tensors fields_of(nb::handle given) {
  Tensors all;
  for (const nb::handle each : nb::borrow<nb::sequence>(given)) all.push_back(tensor_of(each));
  return all;
}

nb::object StageFunction::get() const {
  require(function_ != nullptr, "a function of a data set has been collected by Python, with all that led to it");
  return nb::borrow(function_);
}

namespace {

using erased::ElementFunction;
using erased::Pipeline;
using erased::PipelineFunction;

// ---- functions of stages

StageFunctionPointer stage_function(const FunctionArg& f) { return std::make_shared<StageFunction>(f.held.get()); }

/// The keepers of a stage: those of the stages before it, and of its own functions.
Keepers with(Keepers keepers, std::initializer_list<StageFunctionPointer> own) {
  for (const StageFunctionPointer& each : own) keepers.emplace_back(each);
  return keepers;
}

/// The pipeline that make() gives without the GIL, and the keepers of its functions.
template <class Make> PythonPipeline made(Keepers keepers, const Make& make) {
  const Pipeline stages = without_gil(make);
  return PythonPipeline(stages, std::move(keepers));
}
/// As made(), of a stage behind those of `self`.
template <class Make>
PythonPipeline behind(const PythonPipeline& self, const Make& make,
                      std::initializer_list<StageFunctionPointer> own = {}) {
  return made(with(self.keepers, own), make);
}

ElementFunction traced(const StageFunctionPointer& f) {
  return [f](In in) { return in_python([&] { return fields_of(f->get()(list_of(in))); }); };
}

ElementFunction compiled(const StageFunctionPointer& f, const char* name) {
  const auto body = [run = traced(f)](const Tensors& fields) -> Tensors { return run(fields); };
  return [g = function(body, {.name = name})](In in) { return g(Tensors(in.begin(), in.end())); };
}

/// A function that runs in Python for each element. A trace of it takes a branch, which makes the engine run it for the
/// first element, whose results tell the specs.
ElementFunction untraced(const StageFunctionPointer& f) {
  return [run = traced(f)](In in) {
    for (const Tensor& field : in)
      if (field.is_symbolic()) static_cast<void>(static_cast<bool>(reduce_all(equal(field, field))));
    return run(in);
  };
}

/// The functions of a stage: compiled, or run in Python for each element.
struct Both {
  Both(const StageFunctionPointer& f, const char* name, bool in_python)
      : trace(in_python ? untraced(f) : traced(f)), run(in_python ? traced(f) : compiled(f, name)) {}
  ElementFunction trace, run;
};

/// A function of Python that gives a data set, and is called for each element.
PipelineFunction pipeline_function(const StageFunctionPointer& f) {
  return [f](In in) {
    return in_python([&] {
      const nb::object given = f->get()(list_of(in));
      if (!nb::isinstance<PythonPipeline>(given))
        throw nb::type_error(text("the function gives a data set, not ", class_of(given)).c_str());
      const PythonPipeline& pipeline = nb::cast<PythonPipeline&>(given);
      for (const Keeper& each : pipeline.keepers) each.function().keep_by_stages();
      return Pipeline(*pipeline.stages);
    });
  };
}

std::vector<Pipeline> all_of(const nb::sequence& parts) {
  std::vector<Pipeline> all;
  for (const nb::handle each : parts) all.push_back(*nb::cast<PythonPipeline&>(each).stages);
  return all;
}

Keepers joined(Keepers all, const Keepers& more) {
  all.insert(all.end(), more.begin(), more.end());
  return all;
}

Keepers keepers_of(const nb::sequence& parts) {
  Keepers all;
  for (const nb::handle each : parts) all = joined(std::move(all), nb::cast<PythonPipeline&>(each).keepers);
  return all;
}

// ---- passes

/// One pass. Threads of Python take elements by turns.
class Pass {
 public:
  explicit Pass(std::unique_ptr<erased::Reading> begun) : reading_(std::move(begun)) {}
  /// The next element; none at the end.
  std::optional<Tensors> take() {
    const std::lock_guard lock(turn_);
    if (!reading_) return {};
    if (has_begun_) reading_->advance();
    has_begun_ = true;
    if (!reading_->at_end()) return reading_->element();
    reading_.reset();
    return {};
  }
  /// Epoch and index of the element that comes next.
  Position position() {
    const std::lock_guard lock(turn_);
    require(static_cast<bool>(reading_), "position: the pass has ended");
    const Position at = reading_->position();
    return has_begun_ ? Position{at.epoch, at.index + 1} : at;
  }
  /// Ends it, and joins its threads, which may wait for the GIL.
  void close() {
    const std::lock_guard lock(turn_);
    reading_.reset();
  }

 private:
  std::unique_ptr<erased::Reading> reading_;
  std::mutex turn_;
  bool has_begun_ = false;
};

/// All passes that Python has begun and keeps; under the GIL.
std::set<std::shared_ptr<Pass>>& open_passes() {
  static auto* const all = new std::set<std::shared_ptr<Pass>>;
  return *all;
}

struct PipelinePass {
  Keepers keepers;
  std::shared_ptr<Pass> pass;

  PipelinePass(std::unique_ptr<erased::Reading> begun, Keepers kept)
      : keepers(std::move(kept)), pass(std::make_shared<Pass>(std::move(begun))) {
    open_passes().insert(pass);
  }
  PipelinePass(PipelinePass&&) = default;
  ~PipelinePass() {
    if (pass) close();
  }
  void close() {
    open_passes().erase(pass);
    without_gil([this] { pass->close(); });
  }
};

nb::list next_of(PipelinePass& self) {
  const std::optional<Tensors> fields = without_gil([&] { return self.pass->take(); });
  if (!fields) {
    open_passes().erase(self.pass);
    throw nb::stop_iteration();
  }
  check_signals();
  return list_of(*fields);
}

// ---- the collector's view

template <class T> int visit_keepers(PyObject* self, visitproc visit, void* arg) {
  Py_VISIT(Py_TYPE(self));
  if (!nb::inst_ready(self)) return 0;
  for (const Keeper& each : nb::inst_ptr<T>(self)->keepers) Py_VISIT(each.object().ptr());
  return 0;
}
template <class T> int clear_keepers(PyObject* self) {
  if (nb::inst_ready(self)) Keepers(std::move(nb::inst_ptr<T>(self)->keepers)).clear();
  return 0;
}
template <class T>
const PyType_Slot keeper_slots[] = {{Py_tp_traverse, reinterpret_cast<void*>(visit_keepers<T>)},
                                    {Py_tp_clear, reinterpret_cast<void*>(clear_keepers<T>)},
                                    {0, nullptr}};

// ---- sources

void bind_sources(nb::module_& module, nb::class_<PythonPipeline>& type) {
  type.def_static(
          "slices",
          [](const TensorsArg& tensors) {
            const Tensors all = tensors.tensors();
            return made({}, [&] { return data::slices(all); });
          },
          "tensors"_a, "The rows of all tensors, side by side.")
      .def_static(
          "generate",
          [](std::vector<Spec> specs, nb::handle signature, const FunctionArg& make) {
            const StageFunctionPointer own = stage_function(make);
            return PythonPipeline(generated(std::move(specs), signature, own), with({}, {own}));
          },
          "specs"_a, "signature"_a, "make"_a, "The elements of the iterator that make() gives, anew in each pass.")
      .def_static("zip",
                  [](const nb::sequence& parts) {
                    const std::vector<Pipeline> all = all_of(parts);
                    return made(keepers_of(parts), [&] { return Pipeline::zip(all); });
                  })
      .def_static(
          "sample",
          [](const nb::sequence& parts, std::vector<double> weights, std::optional<std::uint64_t> seed, bool stop,
             bool again) {
            const std::vector<Pipeline> all = all_of(parts);
            const SampleOptions options{
                .seed = seed, .stop_on_empty_dataset = stop, .rerandomize_each_iteration = again};
            return made(keepers_of(parts), [&] { return Pipeline::sample(all, weights, options); });
          },
          "parts"_a, "weights"_a, "seed"_a.none(), "stop"_a, "again"_a)
      .def_static("choose", [](const nb::sequence& parts, const PythonPipeline& choices, bool stop) {
        const std::vector<Pipeline> all = all_of(parts);
        return made(joined(keepers_of(parts), choices.keepers),
                    [&] { return Pipeline::choose(all, *choices.stages, {.stop_on_empty_dataset = stop}); });
      });
  nb::class_<PipelinePass>(module, "_Pass", nb::is_weak_referenceable(), nb::type_slots(keeper_slots<PipelinePass>),
                           "One pass over a data set.")
      .def("__iter__", [](nb::handle self) { return nb::borrow(self); })
      .def("__next__", next_of)
      .def(
          "position",
          [](const PipelinePass& self) {
            const Position at = without_gil([&] { return self.pass->position(); });
            return nb::make_tuple(at.epoch, at.index);
          },
          "Epoch and index of the element that comes next.")
      .def("close", &PipelinePass::close, "Ends the pass and its threads.");
}

// ---- stages

void bind_functions(nb::class_<PythonPipeline>& type) {
  type.def("map",
           [](const PythonPipeline& self, const FunctionArg& f, int calls, bool in_python) {
             const StageFunctionPointer own = stage_function(f);
             const Both both(own, "map", in_python);
             return behind(self, [&] { return self.stages->map(both.trace, both.run, {.num_parallel_calls = calls}); },
                           {own});
           })
      .def("filter",
           [](const PythonPipeline& self, const FunctionArg& f, bool in_python) {
             const StageFunctionPointer own = stage_function(f);
             const Both both(own, "filter", in_python);
             return behind(self, [&] { return self.stages->filter(both.trace, both.run); }, {own});
           })
      .def("take_while",
           [](const PythonPipeline& self, const FunctionArg& f, bool in_python) {
             const StageFunctionPointer own = stage_function(f);
             const Both both(own, "take_while", in_python);
             return behind(self, [&] { return self.stages->take_while(both.trace, both.run); }, {own});
           })
      .def("scan",
           [](const PythonPipeline& self, const TensorsArg& state, const FunctionArg& f) {
             const Tensors first = state.tensors();
             const StageFunctionPointer own = stage_function(f);
             return behind(self, [&] { return self.stages->scan(first, traced(own), compiled(own, "scan")); }, {own});
           })
      .def("reduce",
           [](const PythonPipeline& self, const TensorsArg& state, const FunctionArg& f) {
             const Tensors first = state.tensors();
             const Keeper keeper(stage_function(f));
             const StageFunctionPointer own = keeper.pointer();
             return list_of(without_gil([&] { return self.stages->reduce(first, compiled(own, "reduce")); }));
           })
      .def("interleave",
           [](const PythonPipeline& self, const FunctionArg& f, int cycle_length, std::int64_t block_length,
              const std::string& name) {
             const InterleaveOptions options{.cycle_length = cycle_length, .block_length = block_length};
             const StageFunctionPointer own = stage_function(f);
             return behind(self, [&] { return self.stages->interleave(pipeline_function(own), options, name); }, {own});
           })
      .def("group_by_window",
           [](const PythonPipeline& self, const FunctionArg& key, const FunctionArg& reduce, const FunctionArg& size) {
             const StageFunctionPointer keys = stage_function(key), reduced = stage_function(reduce),
                                        sizes = stage_function(size);
             const GroupSize size_of_key = [sizes](std::int64_t at) {
               return in_python([&] { return nb::cast<std::int64_t>(sizes->get()(at)); });
             };
             return behind(self,
                           [&] {
                             return self.stages->group_by_window(traced(keys), compiled(keys, "group_by_window"),
                                                                 size_of_key, pipeline_function(reduced));
                           },
                           {keys, reduced, sizes});
           })
      .def("bucket_by_sequence_length",
           [](const PythonPipeline& self, const FunctionArg& length, std::vector<std::int64_t> boundaries,
              std::vector<std::int64_t> sizes, std::vector<Shape> shapes, std::vector<double> values, bool drop) {
             const BucketOptions options{
                 .bucket_boundaries = std::move(boundaries),
                 .bucket_batch_sizes = std::move(sizes),
                 .padding = {.padded_shapes = shapes, .padding_values = values, .drop_remainder = drop}};
             const StageFunctionPointer own = stage_function(length);
             return behind(self,
                           [&] {
                             return self.stages->bucket_by_sequence_length(
                                 traced(own), compiled(own, "bucket_by_sequence_length"), options);
                           },
                           {own});
           })
      .def("rejection_resample", [](const PythonPipeline& self, const FunctionArg& of_class, std::vector<double> target,
                                    std::vector<double> initial, std::optional<std::uint64_t> seed) {
        const RejectionOptions options{.initial_dist = std::move(initial), .seed = seed};
        const StageFunctionPointer own = stage_function(of_class);
        return behind(self,
                      [&] {
                        return self.stages->rejection_resample(traced(own), compiled(own, "rejection_resample"), target,
                                                               options);
                      },
                      {own});
      });
}

void bind_batches(nb::class_<PythonPipeline>& type) {
  type.def("batch",
           [](const PythonPipeline& self, std::int64_t size, bool drop) {
             return behind(self, [&] { return self.stages->batch(size, {.drop_remainder = drop}); });
           })
      .def("padded_batch",
           [](const PythonPipeline& self, std::int64_t size, std::vector<Shape> shapes, std::vector<double> values,
              bool drop) {
             const PaddedBatchOptions options{
                 .padded_shapes = std::move(shapes), .padding_values = std::move(values), .drop_remainder = drop};
             return behind(self, [&] { return self.stages->padded_batch(size, options); });
           })
      .def("unbatch", [](const PythonPipeline& self) { return behind(self, [&] { return self.stages->unbatch(); }); })
      .def("rebatch",
           [](const PythonPipeline& self, const std::vector<std::int64_t>& sizes, bool drop) {
             return behind(self, [&] { return self.stages->rebatch(sizes, {.drop_remainder = drop}); });
           })
      .def("windows",
           [](const PythonPipeline& self, std::int64_t size, std::optional<std::int64_t> shift, std::int64_t stride,
              bool drop) {
             const WindowingOptions options{.shift = shift, .stride = stride, .drop_remainder = drop};
             return behind(self, [&] { return self.stages->windows(size, options); });
           })
      .def(
          "holding",
          [](const PythonPipeline& self, const TensorsArg& fields) {
            const Tensors all = fields.tensors();
            return made({}, [&] { return self.stages->holding(all); });  // it calls no function of a stage before
          },
          "The elements whose fields these are, one after the other.");
}

void bind_order(nb::class_<PythonPipeline>& type) {
  type.def(
          "shuffle",
          [](const PythonPipeline& self, std::int64_t buffer, std::optional<std::uint64_t> seed, bool again) {
            const ShuffleOptions options{.seed = seed, .reshuffle_each_iteration = again};
            return behind(self, [&] { return self.stages->shuffle(buffer, options); });
          },
          "buffer"_a, "seed"_a.none(), "again"_a)
      .def("repeat", [](const PythonPipeline& self,
                        std::int64_t n) { return behind(self, [&] { return self.stages->repeat(n); }); })
      .def("take", [](const PythonPipeline& self,
                      std::int64_t n) { return behind(self, [&] { return self.stages->take(n); }); })
      .def("skip", [](const PythonPipeline& self,
                      std::int64_t n) { return behind(self, [&] { return self.stages->skip(n); }); })
      .def("shard", [](const PythonPipeline& self, int n,
                       int i) { return behind(self, [&] { return self.stages->shard(n, i); }); })
      .def("concatenate",
           [](const PythonPipeline& self, const PythonPipeline& other) {
             return made(joined(self.keepers, other.keepers), [&] { return self.stages->concatenate(*other.stages); });
           })
      .def("enumerate", [](const PythonPipeline& self,
                           std::int64_t start) { return behind(self, [&] { return self.stages->enumerate(start); }); })
      .def("unique", [](const PythonPipeline& self) { return behind(self, [&] { return self.stages->unique(); }); })
      .def("ignore_errors",
           [](const PythonPipeline& self, bool log) {
             return behind(self, [&] { return self.stages->ignore_errors({.log_warning = log}); });
           })
      .def("cache", [](const PythonPipeline& self) { return behind(self, [&] { return self.stages->cache(); }); })
      .def("cache_in", [](const PythonPipeline& self,
                          const std::string& file) { return behind(self, [&] { return self.stages->cache(file); }); })
      .def("prefetch", [](const PythonPipeline& self, int buffers) {
        return behind(self, [&] { return self.stages->prefetch({.buffers = buffers}); });
      });
}

}  // namespace

void close_readings() {
  while (!open_passes().empty()) {
    const std::shared_ptr<Pass> pass = *open_passes().begin();
    open_passes().erase(pass);
    without_gil([&] { pass->close(); });
  }
}

void bind_pipeline(nb::module_& module) {
  nb::class_<PythonPipeline> type(module, "_Pipeline", nb::type_slots(keeper_slots<PythonPipeline>),
                                  "The stages of a data set.");
  bind_sources(module, type);
  bind_functions(type);
  bind_batches(type);
  bind_order(type);
  type.def("cardinality", [](const PythonPipeline& self) { return self.stages->cardinality(); })
      .def("is_endless", [](const PythonPipeline& self) { return self.stages->is_endless(); })
      .def("specs", [](const PythonPipeline& self) { return self.stages->specs(); })
      .def("explain",
           [](const PythonPipeline& self) { return text(without_gil([&] { return self.stages->explain(); })); })
      .def(
          "begin_at",
          [](const PythonPipeline& self, std::int64_t epoch, std::int64_t index) {
            return PipelinePass(without_gil([&] { return self.stages->from(Position{epoch, index}).begin(); }),
                                self.keepers);
          },
          "epoch"_a, "index"_a)
      .def("begin", [](const PythonPipeline& self) {
        return PipelinePass(without_gil([&] { return self.stages->begin(); }), self.keepers);
      });
}

}  // namespace gradus::python
