/// TextDataset<N>: elements of strings and N tensors beside them, such as a label. Its stages are those of Dataset; a
/// map, called on the host, turns the strings into numbers, and gives a Dataset.
#pragma once
#include <array>
#include <concepts>
#include <filesystem>
#include <functional>
#include <optional>
#include <tuple>
#include <type_traits>
#include <vector>
#include "gradus/data/dataset.h"
#include "gradus/data/strings.h"

namespace gradus {

/// Options of TextDataset::map.
struct TextMapOptions {
  /// Specs of the tensors of the result, any_size where a size varies. Empty: they are found by calls for the first
  /// elements, for empty strings and for long ones.
  std::vector<Spec> specs = {};
};

/// Strings, if there are any, and the tensors beside them.
struct TextFields {
  std::optional<Strings> text = {};  // first in an element
  Tensors tensors = {};              // after it
};
/// A function of the fields of an element, called on the host.
using TextFunction = std::function<TextFields(const Strings&, In)>;

/// The type of an element of strings and N tensors: Strings alone, or a tuple of all.
template <std::size_t N> struct text_element_of {
  using type = decltype(std::tuple_cat(std::tuple<Strings>(), std::array<Tensor, N>()));  // the element
};
template <> struct text_element_of<0> {
  using type = Strings;
};

/// A chain of stages, the first of whose fields are packed strings.
class TextPipeline {
 public:
  /// `text`: the shape of the strings of an element, any_size where it varies.
  TextPipeline(Pipeline pipeline, const Shape& text) : pipeline_(std::move(pipeline)), text_(text) {}
  /// As TextDataset::batch.
  TextPipeline batch(std::int64_t size, BatchOptions options) const;
  /// As TextDataset::filter.
  TextPipeline filter(std::function<bool(const Strings&, In)> predicate) const;
  /// A map whose results have strings.
  TextPipeline map_to_text(const TextFunction& f, const TextMapOptions& options) const;
  /// A map whose results are tensors.
  Pipeline map_to_tensors(const TextFunction& f, const TextMapOptions& options) const;
  /// Rows of both, as data::from_tensor_slices.
  static TextPipeline slices(const Strings& strings, const Tensors& tensors);

  /// The stages.
  const Pipeline& pipeline() const { return pipeline_; }
  /// The shape of the strings of an element.
  const Shape& text() const { return text_; }
  /// This, with the other chain of stages, which leaves elements as they are.
  TextPipeline with(Pipeline pipeline) const { return {std::move(pipeline), text_}; }

 private:
  Pipeline pipeline_;
  Shape text_;
};

namespace detail {

/// The result of a map as fields.
inline TextFields text_fields(Strings text) { return {std::move(text), {}}; }
inline TextFields text_fields(Tensor tensor) { return {std::nullopt, {std::move(tensor)}}; }
template <class Result> TextFields text_fields(Result&& result) {
  return std::apply(
      []<class First, class... Rest>(First&& first, Rest&&... rest) {
        if constexpr (std::same_as<std::remove_cvref_t<First>, Strings>) return TextFields{first, {Tensor(rest)...}};
        else return TextFields{std::nullopt, {Tensor(first), Tensor(rest)...}};
      },
      std::forward<Result>(result));
}

/// True if the first field of a map's result is Strings.
template <class R> struct gives_text : std::is_same<std::remove_cvref_t<std::tuple_element_t<0, R>>, Strings> {};
template <> struct gives_text<Strings> : std::true_type {};
template <> struct gives_text<Tensor> : std::false_type {};
/// The number of fields of a map's result.
template <class R> struct text_arity_of : std::tuple_size<R> {};
template <> struct text_arity_of<Strings> : std::integral_constant<std::size_t, 1> {};
template <> struct text_arity_of<Tensor> : std::integral_constant<std::size_t, 1> {};

/// The call f(text, tensors[0], tensors[1], ...).
template <std::size_t N, class F> decltype(auto) call_with_text(F& f, const Strings& text, In tensors) {
  return [&]<std::size_t... i>(std::index_sequence<i...>) -> decltype(auto) {
    return f(text, tensors[i]...);
  }(std::make_index_sequence<N>());
}

}  // namespace detail

/// A restartable sequence of strings and N tensors beside them.
///
///   TextDataset<1> reviews = data::text_dataset_from_directory("reviews");
///   Dataset<2> ids = reviews.map([&](const Strings& text, Tensor label) { return std::pair{vectorize(text), label};
///   });
template <std::size_t N> class TextDataset {
 public:
  /// Strings for N = 0, else a tuple of Strings and N Tensors.
  using element = typename text_element_of<N>::type;

  /// Applies f to each element: f(strings, tensors...) is called on the host, on the thread that makes elements, and is
  /// not traced. It gives Strings, a Tensor, or a pair or tuple of them, where strings come first. Without strings the
  /// result is a Dataset, which can be trained with. f has to give the same for the same element, as TextVectorization,
  /// lookups and tokenizers do. InvalidArgument, naming the element, where a result has other sizes than those that
  /// were found (TextMapOptions).
  template <class F> auto map(F f, const TextMapOptions& options = {}) const {
    using Result = std::remove_cvref_t<decltype(detail::call_with_text<N>(f, std::declval<Strings>(), In()))>;
    const TextFunction run = [f](const Strings& text, In tensors) mutable {
      return detail::text_fields(detail::call_with_text<N>(f, text, tensors));
    };
    constexpr std::size_t fields = detail::text_arity_of<Result>::value;
    if constexpr (detail::gives_text<Result>::value) {
      return TextDataset<fields - 1>(text_.map_to_text(run, options));
    } else {
      return Dataset<fields>(text_.map_to_tensors(run, options));
    }
  }
  /// Keeps the elements for which predicate(strings, tensors...), called on the host, is true. There is no cardinality
  /// after it.
  template <class F> TextDataset filter(F predicate) const {
    return TextDataset(text_.filter([predicate](const Strings& text, In tensors) mutable {
      return static_cast<bool>(detail::call_with_text<N>(predicate, text, tensors));
    }));
  }
  /// Joins `size` elements of equal sizes (else InvalidArgument) along a new axis 0. The last batch is smaller or
  /// dropped.
  TextDataset batch(std::int64_t size, BatchOptions options = {}) const {
    return TextDataset(text_.batch(size, options));
  }
  /// As Dataset::shuffle.
  TextDataset shuffle(ShuffleOptions options = {}) const { return with(text_.pipeline().shuffle(options)); }
  TextDataset shuffle(std::int64_t buffer_size, ShuffleOptions options = {}) const {
    return with(text_.pipeline().shuffle(buffer_size, options));
  }
  /// As Dataset::shard.
  TextDataset shard(int count, int index) const { return with(text_.pipeline().shard(count, index)); }
  /// As Dataset::cache. A map of text is compared only by its specs, as a generator is.
  TextDataset cache() const { return with(text_.pipeline().cache()); }
  TextDataset cache(const std::filesystem::path& file) const { return with(text_.pipeline().cache(file)); }
  /// As Dataset::repeat.
  TextDataset repeat(std::int64_t times = -1) const { return with(text_.pipeline().repeat(times)); }
  /// The first n elements.
  TextDataset take(std::int64_t n) const { return with(text_.pipeline().take(n)); }
  /// All but the first n elements.
  TextDataset skip(std::int64_t n) const { return with(text_.pipeline().skip(n)); }
  /// This dataset, always in the order of epoch e.
  TextDataset epoch(std::int64_t e) const { return with(text_.pipeline().epoch(e)); }
  /// Starts the first pass at `position`. The next pass is the epoch after.
  TextDataset from(Position position) const { return with(text_.pipeline().from(position)); }
  /// As Dataset::prefetch.
  TextDataset prefetch(int buffers = autotune) const { return prefetch(PrefetchOptions{.buffers = buffers}); }
  TextDataset prefetch(PrefetchOptions options) const { return with(text_.pipeline().prefetch(options)); }
  /// As Dataset::explain.
  PipelineExplanation explain() const { return text_.pipeline().explain(); }
  /// As Dataset::cardinality.
  std::optional<std::int64_t> cardinality() const { return text_.pipeline().cardinality(); }
  /// The shape of the strings of an element, any_size where it varies.
  const Shape& text_shape() const { return text_.text(); }
  /// The specs of the tensors beside the strings.
  std::array<Spec, N> tensor_spec() const {
    std::array<Spec, N> specs;
    for (std::size_t i = 0; i < N; ++i) specs[i] = text_.pipeline().specs()[i + 1];
    return specs;
  }

  /// An input iterator: copies share one pass.
  struct iterator {
    using value_type = element;              // see TextDataset
    using difference_type = std::ptrdiff_t;  // as iterators need it
    element operator*() const { return element_of_fields(tensors.pass().element()); }
    iterator& operator++() {
      ++tensors;
      return *this;
    }
    void operator++(int) { ++tensors; }
    bool operator==(std::default_sentinel_t end) const { return tensors == end; }
    /// The position of *it. Elements that were prefetched do not count.
    Position position() const { return tensors.position(); }

    typename Dataset<N + 1>::iterator tensors;  // over packed strings
  };
  /// Starts the next pass.
  iterator begin() const { return {{text_.pipeline().begin()}}; }
  /// The end of every pass.
  std::default_sentinel_t end() const { return {}; }
  element first() const {
    return element_of_fields(text_.pipeline().first());
  }  // of epoch 0; OutOfRange if there is none

  // For the rooms of the library.
  explicit TextDataset(TextPipeline text) : text_(std::move(text)) {}
  /// The stages behind this dataset.
  const TextPipeline& text() const { return text_; }

 private:
  static element element_of_fields(const Tensors& fields) {
    if constexpr (N == 0) {
      return detail::unpacked(fields[0]);
    } else {
      return [&]<std::size_t... i>(std::index_sequence<i...>) {
        return element(detail::unpacked(fields[0]), fields[i + 1]...);
      }(std::make_index_sequence<N>());
    }
  }
  TextDataset with(Pipeline pipeline) const { return TextDataset(text_.with(std::move(pipeline))); }
  TextPipeline text_;
};

namespace data {

/// A dataset whose element i holds string i (row i of axis 0) and row i of every tensor. InvalidArgument unless all
/// have the same number of rows.
template <std::same_as<Tensor>... T>
TextDataset<sizeof...(T)> from_tensor_slices(const Strings& strings, const T&... tensors) {
  return TextDataset<sizeof...(T)>(TextPipeline::slices(strings, {tensors...}));
}
/// The strings and the fields of both side by side, as long as the shorter.
template <std::size_t N, std::size_t M> TextDataset<N + M> zip(const TextDataset<N>& text, const Dataset<M>& tensors) {
  return TextDataset<N + M>(text.text().with(Pipeline::zip({text.text().pipeline(), tensors.pipeline()})));
}

}  // namespace data
}  // namespace gradus
