/// Loops over chunks of rows.
#include "gradus/gradients/batches.h"
#include <algorithm>
#include <iterator>
#include <map>
#include <optional>
#include "gradus/gradients/chunks.h"
#include "gradus/gradients/micro_batches.h"
#include "gradus/graph/mask.h"
#include "gradus/graph/region.h"
#include "gradus/gradients/weighed.h"
#include "gradus/ops/constant.h"
#include "gradus/ops/control_ops.h"
#include "gradus/ops/elementwise.h"
#include "gradus/ops/shape.h"
#include "gradus/ops/size_choice.h"

namespace gradus {
namespace {

void require_one_of(std::string_view op, std::string_view rows_name, std::int64_t rows, std::size_t max_bytes) {
  require((rows > 0) != (max_bytes > 0), op, ": say one of ", rows_name, " and max_bytes, got ", rows_name, " ", rows,
          " and max_bytes ", max_bytes);
}

/// Gives the results when the loop within takes `rows` rows an iteration.
using ChunkedWork = std::function<Tensors(std::int64_t rows)>;

/// Either with the rows that the user said, or with as many as fit.
InChunks in_chunks(std::string_view op, const ChunkedWork& work, std::int64_t total, std::int64_t rows,
                   std::size_t max_bytes) {
  if (rows == 0) return chunks_within_budget(op, max_bytes, new_sequence(), total, work);
  rows = std::min(rows, std::max<std::int64_t>(total, 1));
  return {work(rows), rows};
}

/// The sums of a loop over the parts of a loss: the loss, the weight and the gradients. Gradients of tables that are
/// kept as rows come out of it side by side, part after part, and are added up behind it: so there is no sum as large
/// as the table.
class Sums {
 public:
  Sums(const std::function<Loss(In)>& loss, const Variables& sources, In batch, std::int64_t total)
      : loss_(loss), sources_(sources), batch_(batch), total_(total) {}

  LossAndGradients of_all() const { return of(batch_); }

  /// The loop's results, of parts of `rows` rows; see of_parts.
  Tensors by_loop(std::string_view op, std::int64_t rows) {
    find_places(op, rows);
    Tensors results = scan_rows(op, body(), zeros(), batch_, rows);
    if (!fits_) {  // rows that are not those of examples
      places_.assign(places_.size(), 0);
      results = scan_rows(op, body(), zeros(), batch_, rows);
    }
    layouts_[rows] = places_;
    return results;
  }

  /// The sums that by_loop gave.
  LossAndGradients of_parts(const InChunks& given) const {
    const auto& [results, rows] = given;
    const std::vector<std::int64_t>& places = layouts_.at(rows);
    std::vector<GradientPart> sums;
    std::size_t carry = 2, joined = 2 + static_cast<std::size_t>(std::ranges::count(places, 0));
    for (std::size_t i = 0; i < places.size(); ++i) {
      if (places[i] == 0) {
        sums.emplace_back(results[carry++], is_of_lookups_[i]);
        continue;
      }
      Shape shape = sources_[i].shape();
      const std::int64_t extent = shape[0], all = dimension::multiply(total_, places[i]);
      shape.set(0, all);
      sums.push_back(
          GradientPart::of_rows({reshape(results[joined], {all}), reshape(results[joined + 1], shape)}, extent));
      joined += 2;
    }
    if (is_total_) {
      const Loss loss = Loss::of_total(results[0]);
      return {loss, Gradients::of_total(sources_, std::move(sums), loss.own_weight())};
    }
    return {Loss::of_sums(results[0], results[1]), Gradients::of_sums(sources_, std::move(sums), results[1])};
  }

 private:
  LossAndGradients of(In part) const {
    GradientTape tape;
    Loss value = loss_(part);
    Gradients gradients = tape.gradient(value, sources_);
    return {std::move(value), std::move(gradients)};
  }

  /// How many rows of its table an example reads, if `gradient` is kept as rows and all parts together read no more
  /// than the table has; 0: the sum is in full.
  std::int64_t places_of(const GradientPart& gradient, const Variable& table, std::int64_t rows) const {
    if (!gradient.is_rows()) return 0;
    const auto places = dimension::divide(gradient.summed().indices.shape()[0], rows);
    if (!places || *places == 0) return 0;
    const bool known = *places > 0;
    return SizeChoice::choose(!known || *places <= table.shape()[0] / total_) ? *places : 0;
  }

  /// The carries and joined values of the loop, for parts of `rows` rows.
  void find_places(std::string_view op, std::int64_t rows) {
    std::vector<Spec> specs;
    const MaskedRows masked(batch_);
    for (const Tensor& x : masked.all()) {
      specs.push_back(x.spec());
      specs.back().shape.set(0, rows);
    }
    fits_ = true;
    places_.clear();
    is_of_lookups_.clear();
    const RegionTrace trace(op, specs, [&](In part) {
      const auto [loss, gradients] = of(masked.take(part));
      for (std::size_t i = 0; i < gradients.size(); ++i) {
        const GradientPart mean = gradients.own_mean(i);
        places_.push_back(places_of(mean, sources_[i], rows));
        is_of_lookups_.push_back(mean.is_of_lookups());
      }
      is_total_ = loss.is_sum();
      require(!loss.is_sum_with_penalty(), op, ": ", penalty_of_parts);
      return Tensors{loss.own_value(), loss.own_weight()};
    });
    loss_specs_ = specs_of(trace.results());
  }

  /// For the carries.
  Tensors zeros() const {
    Tensors zero;
    for (const Spec& spec : loss_specs_) zero.push_back(fill(spec.shape, 0, spec.dtype));
    for (std::size_t i = 0; i < places_.size(); ++i)
      if (places_[i] == 0) zero.push_back(fill(sources_[i].shape(), 0, computed_in(sources_[i].dtype())));
    return zero;
  }

  /// The sums so far plus those of one part more, then rows of tables.
  std::function<Tensors(In, In)> body() {
    return [this](In so_far, In part) {
      const auto [loss, gradients] = of(part);
      const Tensor value = loss.own_value(), weight = loss.own_weight();
      Tensors next{so_far[0] + weighed(value, weight), so_far[1] + weight}, joined;
      for (std::size_t i = 0; i < gradients.size(); ++i) {
        const DType wide = computed_in(sources_[i].dtype());
        const GradientPart sum =
            gradients.own_mean(i).map([&](const Tensor& mean) { return weighed(cast(mean, wide), weight); });
        if (places_[i] == 0) next.push_back(so_far[next.size()] + sum.whole());
        else add_rows(sum, i, part[0].shape()[0], joined);
      }
      std::ranges::move(joined, std::back_inserter(next));
      return next;
    };
  }
  /// As rows of the part.
  void add_rows(const GradientPart& sum, std::size_t i, std::int64_t rows, Tensors& joined) {
    const Variable& table = sources_[i];
    const std::int64_t width = dimension::multiply(places_[i], table.shape().size() / table.shape()[0]);
    fits_ = fits_ && sum.is_rows() && sum.summed().indices.shape()[0] == dimension::multiply(rows, places_[i]);
    const AddedRows added = fits_ ? sum.summed() : AddedRows();
    joined.push_back(fits_ ? reshape(cast(added.indices, i64), {rows, places_[i]}) : fill({rows, places_[i]}, -1, i64));
    joined.push_back(fits_ ? reshape(added.values, {rows, width}) : fill({rows, width}, 0, computed_in(table.dtype())));
  }

  const std::function<Loss(In)>& loss_;
  const Variables& sources_;
  In batch_;
  std::int64_t total_;
  std::vector<Spec> loss_specs_;
  std::vector<std::int64_t> places_;                           // per variable
  std::vector<bool> is_of_lookups_;                            // per variable: read by gathers of rows alone
  bool is_total_ = false;                                      // true for a Loss::sum
  bool fits_ = true;                                           // all parts read as many places as places_ says
  std::map<std::int64_t, std::vector<std::int64_t>> layouts_;  // places_ by the rows of a part
};

Tensors tensors_of(const LossAndGradients& all) {
  Tensors tensors{all.loss.own_value(), all.loss.own_weight()};
  Gradients gradients = all.gradients;
  gradients.for_each_tensor([&](const Tensor& x) { tensors.push_back(x); });
  return tensors;
}

}  // namespace

Tensor detail::map_batches(const TensorMap& f, const Tensor& xs, const MapBatchesOptions& options) {
  constexpr std::string_view op = "map_batches";
  check_options(op, options);
  require_one_of(op, "batch_size", options.batch_size, options.max_bytes);
  const std::int64_t total = known_rows_of_batch(op, {&xs, 1});
  bool has_lost_mask = false;
  const auto of_rows = [&](In, In slices) {
    const Tensor y = f(slices[0]);
    require(y.defined() && y.shape().rank() > 0 && y.shape()[0] == slices[0].shape()[0], op,
            ": the function must give as many rows as it gets: of ", slices[0].spec(), " it gave ",
            y.defined() ? text(y.spec()) : "nothing");
    const MaskedRows masked({&y, 1});
    has_lost_mask = SequenceMask::is_lost(y);
    return Tensors(masked.all().begin(), masked.all().end());
  };
  const ChunkedWork work = [&](std::int64_t rows) {
    return rows >= total ? of_rows({}, {&xs, 1}) : scan_rows(op, of_rows, {}, {&xs, 1}, rows);
  };
  const Tensors results = in_chunks(op, work, total, options.batch_size, options.max_bytes).results;
  if (results.size() > 1) SequenceMask::set(results[0], results[1]);
  else if (has_lost_mask) SequenceMask::lose(results[0]);
  return results[0];
}

LossAndGradients detail::accumulated_gradients(const std::function<Loss(In)>& loss, const Variables& sources, In batch,
                                               const AccumulateOptions& options) {
  constexpr std::string_view op = "accumulated_gradients";
  check_options(op, options);
  require_one_of(op, "micro_batch", options.micro_batch, options.max_bytes);
  const std::int64_t total = known_rows_of_batch(op, batch);
  require(total > 0, op, ": the batch has no rows");
  Sums sums(loss, sources, batch, total);
  if (options.micro_batch >= total) return sums.of_all();
  std::optional<LossAndGradients> whole;
  const ChunkedWork work = [&](std::int64_t rows) {
    if (rows < total) return sums.by_loop(op, rows);
    whole = sums.of_all();
    return tensors_of(*whole);
  };
  const InChunks built = in_chunks(op, work, total, options.micro_batch, options.max_bytes);
  return built.rows < total ? sums.of_parts(built) : *whole;
}

}  // namespace gradus
