/// Stages of text: sources, batches, maps and filters on the host. Strings are packed between stages, so that all other
/// stages take them for bytes.
#include <algorithm>
#include <cstring>
#include "gradus/base/hash.h"
#include "gradus/data/element_work.h"
#include "gradus/data/on_processor.h"
#include "gradus/data/pipeline_changes.h"
#include "gradus/data/rethrow.h"
#include "gradus/data/rows.h"
#include "gradus/data/text_dataset.h"

namespace gradus {
namespace {

Tensors packed_fields(TextFields fields) {
  Tensors all;
  if (fields.text) all.push_back(packed(*fields.text));
  for (Tensor& tensor : fields.tensors) all.push_back(std::move(tensor));
  return all;
}

// Rows of strings and tensors.

class TextSlicesPass : public Pass {
 public:
  TextSlicesPass(const Strings& strings, const std::vector<Rows>& arrays) : strings_(strings), arrays_(arrays) {}
  Tensors at(std::int64_t index) override {
    Tensors element{packed(strings_[index])};
    for (const Rows& rows : arrays_) element.push_back(rows.at(index));
    return element;
  }

 private:
  const Strings& strings_;
  const std::vector<Rows>& arrays_;
};

class TextSlicesStage : public Stage {
 public:
  TextSlicesStage(Strings strings, std::vector<Rows> arrays)
      : Stage(specs_with(arrays)), strings_(std::move(strings)), arrays_(std::move(arrays)) {}
  std::string name() const override { return "from_tensor_slices"; }
  std::uint64_t identity() const override {
    std::uint64_t hash = hash_of(strings_.shape());
    for (const std::string& value : strings_.values()) hash = mix(hash, hash_of(std::string_view(value)));
    for (const Rows& rows : arrays_) hash = rows.hash(hash);
    return hash;
  }
  std::string_view remedy() const override { return rows_of_source; }
  std::int64_t length(std::int64_t) const override { return strings_.shape()[0]; }
  std::int64_t held_bytes() const override {
    std::int64_t bytes = 0;
    for (const std::string& value : strings_.values()) bytes += std::ssize(value);
    for (const Rows& rows : arrays_) bytes += static_cast<std::int64_t>(rows.array().bytes());
    return bytes;
  }
  std::unique_ptr<Pass> make_pass(std::int64_t) const override {
    return std::make_unique<TextSlicesPass>(strings_, arrays_);
  }

 private:
  static std::vector<Spec> specs_with(const std::vector<Rows>& arrays) {
    std::vector<Spec> specs{packed_spec()};
    for (const Rows& rows : arrays) specs.push_back(rows.row_spec());
    return specs;
  }
  const Strings strings_;
  const std::vector<Rows> arrays_;
};

// Batches.

Strings joined_texts(const std::vector<Tensors>& elements, std::int64_t first) {
  std::vector<std::string> values;
  Shape shape;
  for (std::size_t i = 0; i < elements.size(); ++i) {
    const Strings strings = unpacked(elements[i][0]);
    if (i == 0) shape = strings.shape();
    require(strings.shape() == shape, "batch: elements differ in size: the strings of element ",
            first + static_cast<std::int64_t>(i), " are ", brackets(strings.shape()), ", those of element ", first,
            " are ", brackets(shape), "; bring them to one size in a map");
    values.insert(values.end(), strings.values().begin(), strings.values().end());
  }
  shape.insert(0, std::ssize(elements));
  return {shape, std::move(values)};
}

Tensor joined_field(const std::vector<Tensors>& elements, std::size_t field, std::int64_t first) {
  const Spec spec = elements[0][field].spec();
  const Stacked rows({Spec{spec.dtype, spec.shape}}, std::ssize(elements));
  for (std::size_t i = 0; i < elements.size(); ++i) {
    const Tensor& value = elements[i][field];
    require(value.spec() == spec, "batch: elements differ in size: field ", field, " of element ",
            first + static_cast<std::int64_t>(i), " is ", value.spec(), ", that of element ", first, " is ", spec,
            "; bring them to one size in a map");
    if (const std::size_t bytes = value.bytes(); bytes > 0) std::memcpy(rows.rows[0] + i * bytes, value.host(), bytes);
  }
  return rows.fields[0];
}

class TextBatchPass : public Pass {
 public:
  TextBatchPass(const Stage& source, std::int64_t epoch, std::int64_t size, bool drop_remainder)
      : source_(source.open(epoch)),
        length_(source.length(epoch)),
        size_(size),
        fewest_(drop_remainder ? size : 1),
        fields_(source.specs().size()) {}
  Tensors at(std::int64_t index) override {
    const std::int64_t first = index * size_, count = std::min(size_, length_ - first);
    const std::vector<Tensors> elements = elements_from(*source_, first, count);
    if (std::ssize(elements) < fewest_) return {};
    Tensors batch{packed(joined_texts(elements, first))};
    for (std::size_t field = 1; field < fields_; ++field) batch.push_back(joined_field(elements, field, first));
    return batch;
  }

 private:
  std::unique_ptr<Pass> source_;
  const std::int64_t length_, size_, fewest_;
  const std::size_t fields_;
};

class TextBatchStage : public DerivedStage {
 public:
  TextBatchStage(const StagePointer& source, std::int64_t size, bool drop_remainder)
      : DerivedStage(source, specs_of(*source, drop_remainder ? size : any_size)),
        size_(size),
        drop_remainder_(drop_remainder) {}
  std::string name() const override { return text("batch(", size_, ")"); }
  std::optional<int> batchings() const override { return source().batchings().value_or(0) + 1; }
  std::uint64_t identity() const override { return drop_remainder_; }
  std::optional<std::int64_t> batch_size() const override { return size_; }
  StagePointer over(const std::vector<StagePointer>& sources, const PipelineChanges& changes) const override {
    return std::make_shared<TextBatchStage>(sources[0], changes.batch_size.value_or(size_), drop_remainder_);
  }
  std::optional<RowLayout> layout(std::int64_t epoch) const override {
    if (!is_counted()) return {};
    const std::int64_t elements = source().length(epoch);
    return RowLayout{drop_remainder_ ? elements / size_ * size_ : elements, size_};
  }
  std::int64_t length(std::int64_t epoch) const override {
    return WindowShape{size_, size_, 1, drop_remainder_}.count(source().length(epoch));
  }
  std::unique_ptr<Pass> make_pass(std::int64_t epoch) const override {
    return std::make_unique<TextBatchPass>(source(), epoch, size_, drop_remainder_);
  }

 private:
  static std::vector<Spec> specs_of(const Stage& source, std::int64_t rows) {
    std::vector<Spec> specs = source.specs();
    for (std::size_t i = 1; i < specs.size(); ++i) specs[i].shape.insert(0, rows);
    return specs;
  }
  const std::int64_t size_;
  const bool drop_remainder_;
};

// Maps.

/// The function applied to an element, apart from what this thread records.
TextFields applied(const TextFunction& f, const Strings& text, In tensors) {
  TextFields result;
  apart_from_recordings([&] {
    const OnProcessor here;
    result = f(text, tensors);
    for (Tensor& tensor : result.tensors) tensor = settled(tensor);
  });
  return result;
}
TextFields applied(const TextFunction& f, const Tensors& element) {
  return applied(f, unpacked(element[0]), In(element).subspan(1));
}

/// Specs of the results of a map, and the shape of their strings.
struct Found {
  std::optional<Shape> text;
  std::vector<Spec> specs;
};

void widen_shape(Shape& shape, const Shape& other, std::string_view field) {
  require(shape.rank() == other.rank(), "map: ", field, " of the results differ in rank: ", brackets(shape), " and ",
          brackets(other));
  widen_sizes(shape, other);
}

/// Takes what the results for several elements have in common.
class ResultSpecs {
 public:
  void add(const TextFields& result) {
    if (!is_begun_) begin(result);
    require(result.text.has_value() == found_.text.has_value() && result.tensors.size() == found_.specs.size(),
            "map: its function gives other fields for one element than for another");
    if (found_.text) widen_shape(*found_.text, result.text->shape(), "the strings");
    for (std::size_t i = 0; i < found_.specs.size(); ++i) {
      const Spec& spec = result.tensors[i].spec();
      require(spec.dtype == found_.specs[i].dtype, "map: tensor ", i, " of the results is ", found_.specs[i],
              " for one element and ", spec, " for another");
      widen_shape(found_.specs[i].shape, spec.shape, text("tensor ", i));
    }
  }
  Found take() { return std::move(found_); }

 private:
  void begin(const TextFields& result) {
    is_begun_ = true;
    if (result.text) found_.text = result.text->shape();
    for (const Tensor& tensor : result.tensors) found_.specs.push_back({tensor.dtype(), tensor.shape()});
  }
  bool is_begun_ = false;
  Found found_;
};

/// The elements by which sizes are found: the first ones, and the last, which may be a smaller batch.
constexpr std::int64_t first_ones = 3;
std::vector<Tensors> sampled_elements(const Stage& source) {
  std::vector<Tensors> elements;
  const std::unique_ptr<Pass> pass = source.open(0);
  const std::int64_t length = source.length(0);
  for (std::int64_t i = 0; i < std::min(length, first_ones); ++i) {
    Tensors element = pass->at(i);
    if (element.empty()) return elements;
    elements.push_back(std::move(element));
  }
  if (source.is_counted() && !source.is_endless() && length > first_ones) elements.push_back(pass->at(length - 1));
  return elements;
}

/// Strings that are empty, or long, in the place of those of an element: sizes that follow from the text differ then. A
/// function that does not take them has told nothing.
void add_other_texts(ResultSpecs& specs, const TextFunction& f, const Tensors& element) {
  const Strings strings = unpacked(element[0]);
  std::string words;
  for (int i = 0; i < 64; ++i) words += text(static_cast<char>('a' + i % 26), "1 ");
  for (const std::string& other : {std::string(), words}) {
    std::vector<std::string> values(strings.values().size(), other);
    TextFields result;
    try {
      result = applied(f, Strings(strings.shape(), std::move(values)), In(element).subspan(1));
    } catch (const Error&) { continue; }
    specs.add(result);
  }
}

/// Rows of a batch that may be smaller at the end.
void open_rows(Found& found, std::int64_t rows) {
  const auto open = [&](Shape& shape) {
    if (shape.rank() > 0 && shape[0] == rows) shape.set(0, any_size);
  };
  if (found.text) open(*found.text);
  for (Spec& spec : found.specs) open(spec.shape);
}

Found found_specs(const Stage& source, const Shape& strings, const TextFunction& f, const TextMapOptions& options) {
  ResultSpecs specs;
  const std::vector<Tensors> elements = sampled_elements(source);
  require(!elements.empty(), "map: the data set of text has no element, so that the sizes of results are not known");
  for (std::int64_t i = 0; i < std::ssize(elements); ++i) try {
      specs.add(applied(f, elements[static_cast<std::size_t>(i)]));
    } catch (...) { rethrow_in(text("map, element ", i < first_ones ? i : source.length(0) - 1)); }
  add_other_texts(specs, f, elements[0]);
  Found found = specs.take();
  if (strings.rank() > 0 && strings[0] == any_size)
    if (const Strings first = unpacked(elements[0][0]); first.shape().rank() > 0) open_rows(found, first.shape()[0]);
  if (options.specs.empty()) return found;
  require(options.specs.size() == found.specs.size(), "map: ", options.specs.size(), " specs for ", found.specs.size(),
          " tensors of its results");
  found.specs = options.specs;
  return found;
}

class TextMapPass : public Pass {
 public:
  TextMapPass(const Stage& source, std::int64_t epoch, const TextFunction& f, const std::vector<Spec>& specs)
      : source_(source.open(epoch)), f_(f), specs_(specs) {}
  Tensors at(std::int64_t index) override {
    const Tensors element = source_->at(index);
    if (element.empty()) return {};
    try {
      Tensors results = packed_fields(applied(f_, element));
      require(results.size() == specs_.size(), "its function gives ", results.size(), " fields, expected ",
              specs_.size());
      for (std::size_t i = 0; i < results.size(); ++i)
        require(fits(results[i].spec(), specs_[i]), "field ", i, " is ", results[i].spec(), ", expected ", specs_[i],
                "; TextMapOptions::specs takes any_size where a size varies");
      return results;
    } catch (...) { rethrow_in(text("map, element ", index)); }
  }

 private:
  std::unique_ptr<Pass> source_;
  const TextFunction& f_;
  const std::vector<Spec>& specs_;
};

class TextMapStage : public DerivedStage {
 public:
  TextMapStage(const StagePointer& source, TextFunction f, std::vector<Spec> specs)
      : DerivedStage(source, std::move(specs)), f_(std::move(f)) {}
  std::string name() const override { return "map"; }
  std::string_view remedy() const override { return "its function has to be the same on every rank"; }
  StagePointer over(const std::vector<StagePointer>& sources, const PipelineChanges&) const override {
    return std::make_shared<TextMapStage>(sources[0], f_, specs());
  }
  std::optional<RowLayout> layout(std::int64_t epoch) const override {
    return source().batchings() == 0 ? std::nullopt : source().layout(epoch);
  }

 protected:
  std::unique_ptr<Pass> make_pass(std::int64_t epoch) const override {
    return std::make_unique<TextMapPass>(source(), epoch, f_, specs());
  }

 private:
  const TextFunction f_;
};

// Filters.

using TextPredicate = std::function<bool(const Strings&, In)>;

class TextFilterPass : public ForwardPass {
 public:
  TextFilterPass(const Stage& source, std::int64_t epoch, const TextPredicate& predicate)
      : source_(source), epoch_(epoch), predicate_(predicate) {}

 private:
  void restart() override {
    pass_ = source_.open(epoch_);
    candidate_ = 0;
  }
  Tensors next() override {
    for (const std::int64_t length = source_.length(epoch_); candidate_ < length;) {
      Tensors element = pass_->at(candidate_++);
      if (element.empty() || is_wanted(element)) return element;
    }
    return {};
  }
  bool is_wanted(const Tensors& element) const {
    bool wanted = false;
    try {
      apart_from_recordings([&] { wanted = predicate_(unpacked(element[0]), In(element).subspan(1)); });
    } catch (...) { rethrow_in(text("filter, element ", candidate_ - 1)); }
    return wanted;
  }
  const Stage& source_;
  const std::int64_t epoch_;
  const TextPredicate& predicate_;
  std::unique_ptr<Pass> pass_;
  std::int64_t candidate_ = 0;
};

class TextFilterStage : public DerivedStage {
 public:
  TextFilterStage(const StagePointer& source, TextPredicate predicate)
      : DerivedStage(source), predicate_(std::move(predicate)) {}
  std::string name() const override { return "filter"; }
  bool is_counted() const override { return false; }
  StagePointer over(const std::vector<StagePointer>& sources, const PipelineChanges&) const override {
    return std::make_shared<TextFilterStage>(sources[0], predicate_);
  }

 protected:
  std::unique_ptr<Pass> make_pass(std::int64_t epoch) const override {
    return std::make_unique<TextFilterPass>(source(), epoch, predicate_);
  }

 private:
  const TextPredicate predicate_;
};

/// `stage` over this chain, which begins where its passes do. Reading ahead is a matter of the whole chain.
Pipeline chained(const Pipeline& pipeline, const std::function<StagePointer(StagePointer)>& stage) {
  return Pipeline(stage(pipeline.with_start())).read_ahead_by(pipeline.ahead());
}

}  // namespace

TextPipeline TextPipeline::slices(const Strings& strings, const Tensors& tensors) {
  require(strings.shape().rank() > 0, "from_tensor_slices: one string is a scalar: it has no rows along axis 0");
  std::vector<Rows> arrays;
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const Tensor& tensor = tensors[i];
    require(tensor.shape().rank() > 0 && tensor.shape()[0] == strings.shape()[0], "from_tensor_slices: there are ",
            strings.shape()[0], " strings, and tensor ", i, " is ", tensor.spec(), "; expected as many rows");
    arrays.emplace_back(tensor);
  }
  Shape each = strings.shape();
  each.erase(0);
  return {Pipeline(std::make_shared<TextSlicesStage>(strings, std::move(arrays))), each};
}

TextPipeline TextPipeline::batch(std::int64_t size, BatchOptions options) const {
  require(size > 0, "batch: the size must be positive, got ", size);
  Shape shape = text_;
  shape.insert(0, options.drop_remainder ? size : any_size);
  return {chained(pipeline_,
                  [&](const StagePointer& source) {
                    return std::make_shared<TextBatchStage>(source, size, options.drop_remainder);
                  }),
          shape};
}

TextPipeline TextPipeline::filter(std::function<bool(const Strings&, In)> predicate) const {
  return with(chained(pipeline_, [&](const StagePointer& source) {
    return std::make_shared<TextFilterStage>(source, std::move(predicate));
  }));
}

TextPipeline TextPipeline::map_to_text(const TextFunction& f, const TextMapOptions& options) const {
  Shape shape;
  Pipeline mapped = chained(pipeline_, [&](const StagePointer& source) {
    Found found = found_specs(*source, text_, f, options);
    shape = found.text.value();
    found.specs.insert(found.specs.begin(), packed_spec());
    return std::make_shared<TextMapStage>(source, f, std::move(found.specs));
  });
  return {std::move(mapped), shape};
}

Pipeline TextPipeline::map_to_tensors(const TextFunction& f, const TextMapOptions& options) const {
  return chained(pipeline_, [&](const StagePointer& source) {
    return std::make_shared<TextMapStage>(source, f, found_specs(*source, text_, f, options).specs);
  });
}

}  // namespace gradus
