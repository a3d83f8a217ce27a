/// Collectives of the devices that run a program together.
#include <array>
#include "gradus/backend/xla/lowering.h"

namespace gradus::xla {
namespace {

/// One group of all. Each exchange has a channel of its own, by which devices match their parts.
std::string all_replicas(Lowering& to) {
  std::vector<std::string> numbers;
  for (int r = 0; r < to.options.replicas; ++r) numbers.push_back(std::to_string(r));
  return text("channel_handle = #stablehlo.channel_handle<handle = ", ++to.channels,
              ", type = 1>, replica_groups = dense<[[", joined(numbers), "]]> : tensor<1x", to.options.replicas,
              "xi64>, use_global_device_ids");
}

HloValue write_all_reduce(const Site& site) {
  const HloValue& x = site.in[0];
  if (site.to.options.replicas == 1 || x.shape().size() == 0) return x;
  HloWriter& out = site.out();
  const std::string sum =
      out.combination(x.dtype(), [&](const HloValue& a, const HloValue& b) { return out.add(a, b); });
  return out.generic("all_reduce", {x}, all_replicas(site.to), {sum}, {x.spec})[0];
}

HloValue write_all_gather(const Site& site) { return write_gathered(site.to, site.in[0]); }

constexpr std::array replica_table{Row{"all_reduce", write_all_reduce}, Row{"all_gather", write_all_gather}};

}  // namespace

std::span<const Row> replica_rows() { return replica_table; }

HloValue write_gathered(Lowering& to, const HloValue& x) {
  if (to.options.replicas == 1) return x;
  Spec spec = x.spec;
  spec.shape.set(0, spec.shape[0] * to.options.replicas);
  if (spec.shape.size() == 0) return to.out.constant(spec.dtype, 0, spec.shape);
  return to.out.generic("all_gather", {x}, text("all_gather_dim = 0 : i64, ", all_replicas(to)), {}, {spec})[0];
}

}  // namespace gradus::xla
