// Data sets: the library's pipelines of tensors, with elements that are nests. Functions of Python are traced once and
// compiled; Python runs on the threads that make elements where a generator, or a new kind of element, needs it.
#include <nanobind/stl/unique_ptr.h>
#include <set>
#include "gradus/data/dataset.h"
#include "gradus/function/traced_function.h"
#include "python/src/binding.h"
#include "python/src/nest.h"

namespace gradus::python {
namespace {

/// The nest of an element; its leaves stand for tensors.
class ElementNest {
 public:
  ElementNest() = default;
  explicit ElementNest(nb::handle like) : nest_(map_leaves(like, [](nb::handle) { return nb::none(); })) {}
  nb::object with(In fields) const {
    std::size_t next = 0;
    return map_leaves(nest_.get(), [&](nb::handle) { return nb::cast(fields[next++]); });
  }
  /// The arguments of a function of elements: a tuple is several.
  nb::object arguments(In fields) const {
    nb::object element = with(fields);
    return PyTuple_CheckExact(element.ptr()) ? element : nb::object(nb::make_tuple(element));
  }
  nb::handle get() const { return nest_.get(); }
  explicit operator bool() const { return static_cast<bool>(nest_); }

 private:
  Held nest_;
};

struct PythonDataset {
  Pipeline pipeline;
  ElementNest nest;
};

/// One pass. Its end joins threads that may wait for the GIL.
class PythonReading {
 public:
  explicit PythonReading(const PythonDataset& dataset) : nest_(dataset.nest) {
    reading_ = without_gil([&] { return dataset.pipeline.begin(); });
    open().insert(this);
  }
  PythonReading(const PythonReading&) = delete;
  ~PythonReading() { close(); }
  nb::object next() {
    if (!reading_ || is_busy_) throw nb::stop_iteration();
    Tensors fields;
    is_busy_ = true;
    const bool has_more = read(fields);
    is_busy_ = false;
    if (has_more) return nest_.with(fields);
    close();
    throw nb::stop_iteration();
  }
  void close() {
    open().erase(this);
    if (reading_) without_gil([gone = std::move(reading_)]() mutable { gone.reset(); });
  }
  static std::set<PythonReading*>& open() {
    static auto* const all = new std::set<PythonReading*>;
    return *all;
  }

 private:
  bool read(Tensors& fields) {
    try {
      return without_gil([&] {
        if (has_begun_) reading_->advance();
        has_begun_ = true;
        if (reading_->at_end()) return false;
        fields = reading_->element();
        return true;
      });
    } catch (...) {
      is_busy_ = false;
      throw;
    }
  }
  ElementNest nest_;
  std::unique_ptr<Reading> reading_;
  bool has_begun_ = false, is_busy_ = false;
};

// ---- functions of elements

Tensors leaves_of_element(nb::handle element) {
  Tensors all;
  for_each_leaf(element, nullptr, [&](nb::handle leaf) { all.push_back(tensor_of(leaf)); });
  return all;
}

/// A function of Python of the fields of an element. The nest of its result is that of its first call.
class FunctionOfElements {
 public:
  FunctionOfElements(const FunctionArg& f, ElementNest nest) : f_(f.held), nest_(std::move(nest)) {}
  Tensors operator()(In fields) const {
    return in_python([&] {
      const nb::object result = f_.get()(*nb::borrow<nb::tuple>(nest_.arguments(fields)));
      if (!*result_) *result_ = ElementNest(result);
      return leaves_of_element(result);
    });
  }
  const ElementNest& result() const { return *result_; }

 private:
  Held f_;
  ElementNest nest_;
  std::shared_ptr<ElementNest> result_ = std::make_shared<ElementNest>();
};

const char types_of_elements = 0;

ElementFunction compiled(const FunctionOfElements& f, const char* name) {
  const auto traced = std::make_shared<TracedFunction>(FunctionOptions{.name = name}, nullptr, 0);
  return [traced, f](In fields) {
    const Body body = [&](In in) { return Called{f(in), nullptr}; };
    return traced->call(fields, {.values = {}, .types = &types_of_elements}, body).tensors;
  };
}

PythonDataset mapped(const PythonDataset& self, const FunctionArg& function, int num_parallel_calls) {
  const FunctionOfElements f(function, self.nest);
  Pipeline made =
      without_gil([&] { return self.pipeline.map(f, compiled(f, "map"), {.num_parallel_calls = num_parallel_calls}); });
  return {std::move(made), f.result()};
}

PythonDataset filtered(const PythonDataset& self, const FunctionArg& predicate) {
  const FunctionOfElements f(predicate, self.nest);
  return {without_gil([&] { return self.pipeline.filter(f, compiled(f, "filter")); }), self.nest};
}

// ---- sources

PythonDataset from_slices(nb::handle tensors) {
  const Tensors all = leaves_of_element(tensors);
  return {without_gil([&] { return data::slices(all); }), ElementNest(tensors)};
}

/// Lists of numbers are tensors, not nests.
nb::object with_tensors(nb::handle given) {
  if (PyDict_Check(given.ptr()) || PyTuple_Check(given.ptr()))
    return map_leaves(given, [](nb::handle leaf) { return nb::cast(tensor_of(leaf)); });
  return nb::cast(tensor_of(given));
}

/// The elements of a generator, which begins anew with each pass.
class Generated {
 public:
  Generated(const FunctionArg& make, std::vector<Spec> specs) : make_(make.held), specs_(std::move(specs)) {}
  std::optional<Tensors> operator()() {
    return in_python([&]() -> std::optional<Tensors> {
      if (!elements_) elements_ = Held(nb::object(nb::iter(make_.get()())));
      const nb::object element = nb::steal(PyIter_Next(elements_.get().ptr()));
      if (element.is_valid()) return fields_of(element);
      if (PyErr_Occurred()) throw nb::python_error();
      return {};
    });
  }

 private:
  /// A leaf of the signature is one tensor, so a list there is no nest.
  Tensors fields_of(nb::handle element) const {
    if (specs_.size() == 1 && !PyTuple_Check(element.ptr()) && !PyDict_Check(element.ptr()))
      return {tensor_of(element, specs_[0].dtype)};
    Tensors all;
    for_each_leaf(element, nullptr, [&](nb::handle leaf) {
      all.push_back(all.size() < specs_.size() ? tensor_of(leaf, specs_[all.size()].dtype) : tensor_of(leaf));
    });
    require(all.size() == specs_.size(), "from_generator: an element has ", all.size(),
            " tensors, and output_signature ", specs_.size());
    return all;
  }
  Held make_, elements_;
  std::vector<Spec> specs_;
};

PythonDataset from_generator(const FunctionArg& generator, nb::handle signature) {
  std::vector<Spec> specs;
  for_each_leaf(signature, nullptr, [&](nb::handle leaf) {
    if (!nb::isinstance<Spec>(leaf))
      throw nb::type_error(
          text("from_generator: output_signature is a nest of TensorSpecs, not of ", class_of(leaf)).c_str());
    specs.push_back(nb::cast<const Spec&>(leaf));
  });
  return {Pipeline::generate(specs, Generated(generator, specs)), ElementNest(signature)};
}

PythonDataset zipped(const nb::args& datasets) {
  std::vector<Pipeline> all;
  nb::list nests;
  for (const nb::handle each : datasets) {
    const PythonDataset& dataset = nb::cast<const PythonDataset&>(each);
    all.push_back(dataset.pipeline);
    nests.append(nb::borrow(dataset.nest.get()));
  }
  return {Pipeline::zip(all), ElementNest(nb::steal(PyList_AsTuple(nests.ptr())))};
}

nb::object element_spec(const PythonDataset& self) {
  std::size_t next = 0;
  const std::vector<Spec>& specs = without_gil([&]() -> const std::vector<Spec>& { return self.pipeline.specs(); });
  return map_leaves(self.nest.get(), [&](nb::handle) { return nb::cast(specs[next++]); });
}

std::int64_t length_of(const PythonDataset& self) {
  const std::optional<std::int64_t> known = self.pipeline.cardinality();
  if (!known) throw nb::type_error("len() of a data set whose number of elements is not known without reading them");
  return *known;
}

void bind_stages(nb::class_<PythonDataset>& type) {
  const auto same = [](const PythonDataset& self, Pipeline made) { return PythonDataset{std::move(made), self.nest}; };
  type.def("map", mapped, "f"_a, "num_parallel_calls"_a = autotune,
           "f applied to each element: traced once, and compiled. The fields of a tuple are its arguments.")
      .def("filter", filtered, "predicate"_a, "The elements for which the predicate, one boolean, holds.")
      .def(
          "shuffle",
          [same](const PythonDataset& self, std::int64_t buffer_size, std::optional<std::uint64_t> seed, bool again) {
            return same(self, self.pipeline.shuffle(buffer_size, {.seed = seed, .reshuffle_each_iteration = again}));
          },
          "buffer_size"_a, "seed"_a = nb::none(), "reshuffle_each_iteration"_a = true)
      .def(
          "batch",
          [same](const PythonDataset& self, std::int64_t size, bool drop) {
            return same(self, self.pipeline.batch(size, {.drop_remainder = drop}));
          },
          "batch_size"_a, "drop_remainder"_a = false)
      .def("unbatch", [same](const PythonDataset& self) { return same(self, self.pipeline.unbatch()); })
      .def(
          "repeat",
          [same](const PythonDataset& self, std::int64_t count) { return same(self, self.pipeline.repeat(count)); },
          "count"_a)
      .def(
          "take",
          [same](const PythonDataset& self, std::int64_t count) { return same(self, self.pipeline.take(count)); },
          "count"_a)
      .def(
          "skip",
          [same](const PythonDataset& self, std::int64_t count) { return same(self, self.pipeline.skip(count)); },
          "count"_a)
      .def(
          "shard",
          [same](const PythonDataset& self, int count, int index) {
            return same(self, self.pipeline.shard(count, index));
          },
          "num_shards"_a, "index"_a)
      .def("cache", [same](const PythonDataset& self) { return same(self, self.pipeline.cache()); })
      .def(
          "prefetch",
          [same](const PythonDataset& self, int buffer_size) {
            return same(self, self.pipeline.prefetch({.buffers = buffer_size}));
          },
          "buffer_size"_a = autotune, "Makes elements ahead, on other threads.");
}

}  // namespace

void close_readings() {
  while (!PythonReading::open().empty()) (*PythonReading::open().begin())->close();
}

void bind_data(nb::module_& module) {
  nb::class_<PythonReading>(module, "_Reading", nb::is_weak_referenceable())
      .def("__iter__", [](nb::handle self) { return nb::borrow(self); })
      .def("__next__", &PythonReading::next)
      .def("close", &PythonReading::close, "Ends the pass, and the threads that make elements for it.");
  nb::class_<PythonDataset> type(module, "Dataset", nb::is_weak_referenceable(),
                                 "Elements of nests of tensors, made by stages.");
  bind_stages(type);
  type.def("__iter__", [](const PythonDataset& self) { return std::make_unique<PythonReading>(self); })
      .def("__len__", length_of)
      .def_prop_ro("element_spec", element_spec, "The nest of the elements, with TensorSpecs.")
      .def(
          "explain", [](const PythonDataset& self) { return printed(self.pipeline.explain()); },
          "The stages, and the time of each.")
      .def_static(
          "from_tensor_slices", [](nb::handle tensors) { return from_slices(with_tensors(tensors)); }, "tensors"_a,
          "Element i holds row i of every tensor of the nest.")
      .def_static(
          "range",
          [](std::int64_t count) {
            return PythonDataset{gradus::data::range(count).pipeline(), ElementNest(nb::none())};
          },
          "count"_a, "0, 1 ... count - 1, as int64.")
      .def_static("from_generator", from_generator, "generator"_a, "output_signature"_a,
                  "The elements of the iterable that generator() gives, for each pass anew.")
      .def_static("zip", zipped, "Tuples of the elements of several data sets.");
}

}  // namespace gradus::python
