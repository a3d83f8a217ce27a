// Iterators of Python as data. Elements are taken apart by the nest of their signature here, and those of a batch are
// written side by side while the GIL is held once: another thread that computes in Python would make each element wait
// for it.
#include <cstring>
#include "python/src/arrays.h"
#include "python/src/binding.h"
#include "python/src/pipeline.h"

namespace gradus::python {
namespace {

/// The containers of an element, whose leaves are its fields in order.
class Structure {
 public:
  /// Reads a nest of tuples, lists and dicts, whose keys are sorted.
  explicit Structure(nb::handle nest) {
    if (PyDict_Check(nest.ptr())) {
      keys_ = Held(nb::module_::import_("builtins").attr("sorted")(nb::borrow(nest)));
      for (const nb::handle key : nb::borrow<nb::list>(keys_.get()))
        parts_.emplace_back(nb::object(nb::borrow(nest)[key]));
    } else if (is_sequence(nest)) {
      is_sequence_ = true;
      for (const nb::handle part : nb::borrow<nb::sequence>(nest)) parts_.emplace_back(part);
    }
  }

  /// Calls visit(field, value) for each leaf of an element. `field`: the number of the first one, and then of the one
  /// behind the last.
  template <class Visit> void for_each_field(nb::handle element, std::size_t& field, const Visit& visit) const {
    if (keys_) {
      std::size_t at = 0;
      for (const nb::handle key : nb::borrow<nb::list>(keys_.get()))
        parts_[at++].for_each_field(nb::object(nb::borrow(element)[key]), field, visit);
    } else if (!is_sequence_) {
      visit(field++, element);
    } else if (PyTuple_Check(element.ptr())) {
      require_length(PyTuple_Size(element.ptr()));
      for (std::size_t i = 0; i < parts_.size(); ++i)
        parts_[i].for_each_field(PyTuple_GetItem(element.ptr(), static_cast<Py_ssize_t>(i)), field, visit);
    } else {
      const nb::object parts = nb::steal(PySequence_List(element.ptr()));
      if (!parts.is_valid()) throw nb::python_error();
      require_length(PyList_Size(parts.ptr()));
      for (std::size_t i = 0; i < parts_.size(); ++i)
        parts_[i].for_each_field(PyList_GetItem(parts.ptr(), static_cast<Py_ssize_t>(i)), field, visit);
    }
  }

 private:
  void require_length(Py_ssize_t length) const {
    if (length == std::ssize(parts_)) return;
    throw nb::type_error(
        text("from_generator: an element of ", length, " parts, output_signature has ", parts_.size()).c_str());
  }

  Held keys_;  // of a dict
  bool is_sequence_ = false;
  std::vector<Structure> parts_;
};

/// A field of an element: a tensor of any dtype as it is, all else in the dtype of its spec.
Tensor field_of(nb::handle value, DType dtype) {
  return nb::isinstance<Tensor>(value) ? nb::cast<const Tensor&>(value) : tensor_of(value, dtype);
}

/// A generator of Python, for all of its passes.
struct Generator {
  StageFunctionPointer make;
  Structure structure;
  std::vector<Spec> specs;
};

class GeneratorElements : public erased::ElementSource {
 public:
  explicit GeneratorElements(std::shared_ptr<const Generator> generator) : generator_(std::move(generator)) {}

  std::optional<Tensors> next() override {
    return in_python([this]() -> std::optional<Tensors> {
      const nb::object element = next_element();
      if (!element.is_valid()) return std::nullopt;
      Tensors fields;
      for_each_field(element, [&](std::size_t field, nb::handle value) {
        fields.push_back(field_of(value, generator_->specs[field].dtype));
      });
      return fields;
    });
  }

  void write(erased::ElementRows& rows) override {
    in_python([&] {
      while (!rows.is_full()) {
        const nb::object element = next_element();
        if (!element.is_valid()) return;
        for_each_field(element, [&](std::size_t field, nb::handle value) {
          if (!write_number(value, rows.spec(field), rows.place(field)) &&
              !write_array(value, rows.spec(field), rows.place(field)))
            rows.put(field, field_of(value, rows.spec(field).dtype));
        });
        rows.end_element();
      }
    });
  }

 private:
  /// The next object of the iterator, which the first call makes; invalid at the end.
  nb::object next_element() {
    if (!iterator_) iterator_ = Held(nb::object(nb::iter(generator_->make->get()())));
    nb::object element = nb::steal(PyIter_Next(iterator_.get().ptr()));
    if (!element.is_valid() && PyErr_Occurred()) throw nb::python_error();
    return element;
  }
  template <class Visit> void for_each_field(nb::handle element, const Visit& visit) const {
    std::size_t field = 0;
    generator_->structure.for_each_field(element, field, visit);
  }

  const std::shared_ptr<const Generator> generator_;
  Held iterator_;
};

}  // namespace

erased::Pipeline generated(std::vector<Spec> specs, nb::handle signature, const StageFunctionPointer& make) {
  const auto generator = std::make_shared<const Generator>(Generator{make, Structure(signature), specs});
  return without_gil([&] {
    return erased::Pipeline::generate(std::move(specs), [generator]() -> std::unique_ptr<erased::ElementSource> {
      return std::make_unique<GeneratorElements>(generator);
    });
  });
}

}  // namespace gradus::python
