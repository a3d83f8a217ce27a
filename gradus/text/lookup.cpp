/// Strings are looked up one by one. Integers are looked up by ops: a search among the sorted terms.
#include "gradus/text/lookup.h"
#include <numeric>
#include "gradus/base/lines.h"
#include "gradus/formats/atomic_file.h"
#include "gradus/ops/constant.h"
#include "gradus/ops/elementwise.h"
#include "gradus/ops/indexing.h"
#include "gradus/ops/reduce.h"
#include "gradus/ops/shape.h"
#include "gradus/ops/sort.h"
#include "gradus/ops/special.h"
#include "gradus/text/string_hashes.h"
#include "gradus/text/unicode.h"
#include "gradus/text/vocabulary_file.h"

namespace gradus {
namespace {

template <class Key, class Options> IndexTable<Key> table_of(std::string layer, const Options& o) {
  check_options(layer, o);
  return IndexTable<Key>(std::move(layer), {o.max_tokens, o.num_oov_indices, o.mask_token, o.oov_token, o.invert,
                                            o.output_mode, o.pad_to_max_tokens});
}

void check_terms(const std::string& layer, const std::vector<std::string>& terms) {
  for (const std::string& term : terms) unicode::check(term, text(layer, ": a term of the vocabulary"));
}

/// [n] as n documents of one term, [n, terms] as n documents.
template <class Key, class Values>
TermCounts<Key> counts_of_list(const std::string& layer, const Shape& shape, const Values& values) {
  require(shape.rank() == 1 || shape.rank() == 2, layer, ": adapt: the data has the shape ", brackets(shape),
          ", expected a list, or a table with a document a row");
  const auto each = static_cast<std::size_t>(shape.rank() == 2 ? shape[1] : 1);
  TermCounts<Key> counts;
  for (std::size_t i = 0; i + each <= values.size() && each > 0; i += each)
    counts.add(
        {values.begin() + static_cast<std::ptrdiff_t>(i), values.begin() + static_cast<std::ptrdiff_t>(i + each)});
  return counts;
}

/// An element of a data set: one document, or a row of each of them.
template <class Key, class Values> void add_element(TermCounts<Key>& counts, const Shape& shape, const Values& values) {
  const std::size_t each = shape.rank() < 2 ? values.size() : static_cast<std::size_t>(shape.back());
  for (std::size_t i = 0; i + each <= values.size() && each > 0; i += each)
    counts.add(
        {values.begin() + static_cast<std::ptrdiff_t>(i), values.begin() + static_cast<std::ptrdiff_t>(i + each)});
}

void require_may_adapt(std::string_view layer, bool has_given_vocabulary) {
  require(!has_given_vocabulary, layer, ": adapt: its options gave a vocabulary; leave it out to take one from data");
}

std::vector<std::int64_t> integers_of(const Tensor& x, const std::string& layer) {
  require(is_integer(x.dtype()), layer, ": the input is ", x.spec(), ", expected integers");
  const Tensor wide = cast(x, i64);
  const std::int64_t* values = wide.host<std::int64_t>();
  return {values, values + wide.shape().size()};
}

template <class T> Tensor vector_of(const std::vector<T>& values) {
  return from_values(values, Shape{std::ssize(values)});
}

/// Its vocabulary is not one of the options: adapt() may take another.
template <class Lookup, class Options> Lookup lookup_from(const TextLayerConfig& config) {
  return made_from(config, [&] { return with_vocabulary<Lookup>(options_from<Options>(config), config); });
}
template <class Lookup, class Options> Lookup unset_lookup_from(const TextLayerConfig& config) {
  return made_from(config, [&] { return Lookup(options_from<Options>(config)); });
}

}  // namespace

// Strings.

StringLookup::StringLookup(StringLookupOptions options)
    : has_given_vocabulary_(!options.vocabulary.empty()), table_(table_of<std::string>("StringLookup", options)) {
  require(has_given_vocabulary_ || options.idf_weights.empty(), "StringLookup: idf_weights without a vocabulary");
  if (has_given_vocabulary_) set_vocabulary(options.vocabulary, options.idf_weights);
}

std::int64_t StringLookup::id_of(const std::string& term) const {
  return table_.id_of(term, [&](std::int64_t places) {
    return static_cast<std::int64_t>(farm_fingerprint(term) % static_cast<std::uint64_t>(places));
  });
}

Tensor StringLookup::operator()(const Strings& x) const {
  require_no_trace("StringLookup");
  table_.require_set();
  require(!table_.options().invert, "StringLookup: with invert it takes ids, and gives strings");
  const Shape& shape = x.shape();
  const OutputMode mode = table_.options().output_mode;
  // Ids, and one_hot, take each string by itself; the other modes take the last dimension for one sample.
  const bool apart = mode == OutputMode::ids || mode == OutputMode::one_hot;
  IdRows ids{shape, {}};
  if (!apart && shape.rank() > 0) ids.outer.erase(-1);
  if (mode == OutputMode::one_hot && shape.rank() > 1 && shape.back() == 1) ids.outer.erase(-1);
  const std::size_t each = apart || shape.rank() == 0 ? 1 : static_cast<std::size_t>(shape.back());
  ids.rows.resize(static_cast<std::size_t>(ids.outer.size()));
  for (std::size_t row = 0; row < ids.rows.size(); ++row)
    for (std::size_t i = 0; i < each; ++i) ids.rows[row].push_back(id_of(x.values()[row * each + i]));
  if (mode == OutputMode::ids) return reshape(padded_ids(ids, 1), shape);
  return in_mode(ids, mode, table_.depth(), table_.weights());
}

Strings StringLookup::operator()(const Tensor& ids) const {
  require_no_trace("StringLookup");
  table_.require_set();
  require(table_.options().invert, "StringLookup: it takes strings; with .invert = true it takes ids");
  std::vector<std::string> terms;
  for (const std::int64_t id : integers_of(ids, "StringLookup")) terms.push_back(table_.term_of(id));
  return {ids.shape(), std::move(terms)};
}

void StringLookup::adapt(const Strings& data) {
  set_counts(counts_of_list<std::string>("StringLookup", data.shape(), data.values()));
}

void StringLookup::adapt_to(const TextPipeline& data) {
  require(!data.pipeline().is_endless(),
          "StringLookup: adapt: the data set has no end; .take(n) says how much is read");
  TermCounts<std::string> counts;
  for (const auto reading = data.pipeline().epoch(0).begin(); !reading->at_end(); reading->advance()) {
    const Strings strings = unpacked(reading->element()[0]);
    add_element(counts, strings.shape(), strings.values());
  }
  set_counts(std::move(counts));
}

void StringLookup::set_counts(TermCounts<std::string> counts) {
  require_may_adapt("StringLookup", has_given_vocabulary_);
  for (const auto& [term, count] : counts.terms) unicode::check(term, text(table_.layer(), ": adapt: a term"));
  table_.set(std::move(counts));
}

void StringLookup::set_vocabulary(const std::vector<std::string>& vocabulary, const std::vector<double>& idf_weights) {
  check_terms(table_.layer(), vocabulary);
  table_.set(vocabulary, idf_weights);
}

void StringLookup::load_vocabulary(const std::filesystem::path& file) {
  const std::string all = read_vocabulary_text(file);
  std::vector<std::string> terms;
  for (std::string_view rest = all; !rest.empty();) {
    std::string_view term = take_line(rest);
    if (term.ends_with('\r')) term.remove_suffix(1);
    terms.emplace_back(term);
  }
  while (!terms.empty() && terms.back().empty()) terms.pop_back();
  try {
    set_vocabulary(terms);
  } catch (const InvalidArgument& error) { throw DataError(text(file.string(), ": ", error.what())); }
}

void StringLookup::save_vocabulary(const std::filesystem::path& file) const {
  std::string lines;
  for (const std::string& term : get_vocabulary()) {
    require(term.find_first_of("\r\n") == std::string::npos, "StringLookup: the term `", term,
            "` has a line break, which a file of lines does not hold; save() writes it");
    lines += term + '\n';
  }
  AtomicFile out(file);
  out.write(lines);
  out.commit();
}

void StringLookup::save(const std::filesystem::path& file) const {
  write_text_layer(file, "StringLookup", config_of(table_));
}
StringLookup StringLookup::load(const std::filesystem::path& file) {
  return lookup_from<StringLookup, StringLookupOptions>({file, "StringLookup"});
}
std::string StringLookup::saved_text() const {
  return table_.is_set() ? text_layer_json("StringLookup", config_of(table_)) : std::string();
}
SavedText::Loading StringLookup::loading(std::string_view saved, const std::string& source) {
  const TextLayerConfig found(saved, source, "StringLookup");
  const auto unset = unset_lookup_from<StringLookup, StringLookupOptions>(found);
  return loading_of(*this, config_of(table_), config_of(unset.table_),
                    [&] { return lookup_from<StringLookup, StringLookupOptions>(found); });
}

// Integers.

IntegerLookup::IntegerLookup(IntegerLookupOptions options)
    : has_given_vocabulary_(!options.vocabulary.empty()), table_(table_of<std::int64_t>("IntegerLookup", options)) {
  require(has_given_vocabulary_ || options.idf_weights.empty(), "IntegerLookup: idf_weights without a vocabulary");
  if (has_given_vocabulary_) set_vocabulary(options.vocabulary, options.idf_weights);
}

/// Terms in their order, with their ids; the mask token among them, so that one search finds all.
void IntegerLookup::make_tensors() {
  std::vector<std::pair<std::int64_t, std::int64_t>> pairs;
  const auto& terms = table_.terms();
  for (std::size_t i = 0; i < terms.size(); ++i)
    pairs.emplace_back(terms[i], table_.first_id() + static_cast<std::int64_t>(i));
  if (const auto& mask = table_.options().mask_token)
    pairs.emplace_back(*mask, table_.first_oov() == 1 ? 0 : IndexTable<std::int64_t>::dropped);
  std::ranges::sort(pairs);
  std::vector<std::int64_t> sorted, ids;
  for (const auto& [term, id] : pairs) sorted.push_back(term), ids.push_back(id);
  sorted_terms_ = vector_of(sorted);
  ids_of_sorted_ = vector_of(ids);
  if (table_.options().invert) {
    std::vector<std::int64_t> by_id = table_.vocabulary(true);
    by_id.push_back(table_.options().oov_token);
    terms_by_id_ = vector_of(by_id);
  }
  if (table_.uses_weights()) weights_ = vector_of(table_.weights());
}

Tensor IntegerLookup::ids_of(const Tensor& x) const {
  const std::int64_t terms = sorted_terms_.shape()[0], places = table_.options().num_oov_indices;
  const Tensor flat = reshape(x, {-1});
  const Tensor oov =
      places > 1 ? floormod(flat, constant(places, i64)) + table_.first_oov() : zeros_like(flat) + table_.first_oov();
  if (terms == 0) return reshape(oov, x.shape());
  const Tensor at = minimum(searchsorted(sorted_terms_, flat, Side::left, i64), terms - 1);
  const Tensor is_known = equal(gather(sorted_terms_, at), flat);
  if (places > 0) return reshape(where(is_known, gather(ids_of_sorted_, at), oov), x.shape());
  return reshape(gather(ids_of_sorted_, where(is_known, at, terms)), x.shape());  // past the end: an OutOfRange
}

Tensor IntegerLookup::terms_of(const Tensor& ids) const {
  const std::int64_t none = terms_by_id_.shape()[0] - 1;
  const Tensor is_term = logical_and(greater_equal(ids, 0), less(ids, none));
  return gather(terms_by_id_, where(is_term, ids, none));
}

Tensor IntegerLookup::operator()(const Tensor& x) const {
  table_.require_set();
  require(is_integer(x.dtype()), "IntegerLookup: the input is ", x.spec(), ", expected integers");
  const Tensor wide = cast(x, i64);
  if (table_.options().invert) return terms_of(wide);
  const Tensor ids = ids_of(wide);
  if (!table_.uses_weights()) return in_mode(ids, table_.options().output_mode, table_.depth());
  const std::int64_t depth = table_.depth(), padding = depth - weights_.shape()[0];
  const Tensor weights = padding > 0 ? concat({weights_, zeros({padding})}, 0) : weights_;
  return in_mode(ids, OutputMode::count, depth) * weights;
}

void IntegerLookup::adapt(const Tensor& data) {
  require_may_adapt("IntegerLookup", has_given_vocabulary_);
  table_.set(counts_of_list<std::int64_t>("IntegerLookup", data.shape(), integers_of(data, "IntegerLookup: adapt")));
  make_tensors();
}

void IntegerLookup::adapt_to(const Pipeline& data) {
  require_may_adapt("IntegerLookup", has_given_vocabulary_);
  require(!data.is_endless(), "IntegerLookup: adapt: the data set has no end; .take(n) says how much is read");
  TermCounts<std::int64_t> counts;
  for (const auto reading = data.epoch(0).begin(); !reading->at_end(); reading->advance()) {
    const Tensor& field = reading->element()[0];
    add_element(counts, field.shape(), integers_of(field, "IntegerLookup: adapt"));
  }
  table_.set(std::move(counts));
  make_tensors();
}

void IntegerLookup::set_vocabulary(const std::vector<std::int64_t>& vocabulary,
                                   const std::vector<double>& idf_weights) {
  table_.set(vocabulary, idf_weights);
  make_tensors();
}

void IntegerLookup::save(const std::filesystem::path& file) const {
  write_text_layer(file, "IntegerLookup", config_of(table_));
}
IntegerLookup IntegerLookup::load(const std::filesystem::path& file) {
  return lookup_from<IntegerLookup, IntegerLookupOptions>({file, "IntegerLookup"});
}
std::string IntegerLookup::saved_text() const {
  return table_.is_set() ? text_layer_json("IntegerLookup", config_of(table_)) : std::string();
}
SavedText::Loading IntegerLookup::loading(std::string_view saved, const std::string& source) {
  const TextLayerConfig found(saved, source, "IntegerLookup");
  const auto unset = unset_lookup_from<IntegerLookup, IntegerLookupOptions>(found);
  return loading_of(*this, config_of(table_), config_of(unset.table_),
                    [&] { return lookup_from<IntegerLookup, IntegerLookupOptions>(found); });
}

// Hashes.

Hashing::Hashing(std::int64_t num_bins, HashingOptions options) : num_bins_(num_bins), options_(std::move(options)) {
  check_number("Hashing", "num_bins", Allowed::positive(""), num_bins);
  require(options_.output_mode != OutputMode::tf_idf,
          "Hashing: output_mode tf_idf needs a vocabulary; take StringLookup");
}

std::int64_t Hashing::bin_of(std::string_view value) const {
  const bool has_mask = options_.mask_value && num_bins_ > 1;
  if (has_mask && value == *options_.mask_value) return 0;
  const std::uint64_t hash = options_.salt ? sip_hash(value, *options_.salt) : farm_fingerprint(value);
  return static_cast<std::int64_t>(hash % static_cast<std::uint64_t>(num_bins_ - has_mask)) + has_mask;
}

Tensor Hashing::in_bins(const Shape& shape, const std::vector<std::int64_t>& bins) const {
  return in_mode(from_values(bins, shape), options_.output_mode, num_bins_);
}

Tensor Hashing::operator()(const Strings& x) const {
  require_no_trace("Hashing");
  std::vector<std::int64_t> bins;
  for (const std::string& value : x.values()) bins.push_back(bin_of(value));
  return in_bins(x.shape(), bins);
}

Tensor Hashing::operator()(const Tensor& x) const {
  require_no_trace("Hashing");
  std::vector<std::int64_t> bins;
  for (const std::int64_t value : integers_of(is_floating(x.dtype()) ? cast(x, i64) : x, "Hashing"))
    bins.push_back(bin_of(text(value)));
  return in_bins(x.shape(), bins);
}

}  // namespace gradus
