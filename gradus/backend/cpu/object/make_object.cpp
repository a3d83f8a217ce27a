/// Steps become an object file: the layout of their state, the tables of each step, and what they have in common.
#include <algorithm>
#include <cstring>
#include <deque>
#include <optional>
#include <unistd.h>
#include "gradus/backend/cpu/kernels/kernel_names.h"
#include "gradus/backend/cpu/object/c_header.h"
#include "gradus/backend/cpu/object/link.h"
#include "gradus/backend/cpu/object/step_maker.h"
#include "gradus/backend/cpu/tiles/used_tiles.h"
#include "gradus/base/thread_pool.h"

namespace gradus {
namespace object {
namespace {

class ObjectMaker {
 public:
  explicit ObjectMaker(const ObjectSteps& all)
      : all_(all), title_((all.steps.size() == 1 ? "export_object of " : "export_objects of ") + all.name) {}

  ObjectText make() {
    const cpu_backend::Isa isa = chosen_isa();
    std::optional<cpu_backend::IsaScope> scope;  // AMX has to be asked for, which an object does not
    if (isa != cpu_backend::isa() || cpu_backend::uses_amx()) scope.emplace(isa);
    const ThreadPool::AtMost one(1);
    lay_out();
    cpu_backend::ObjectModule module{.name = all_.name, .steps = {}, .init = nullptr, .named = {}, .symbol_of = {}};
    for (const ObjectStep& step : all_.steps) {
      StepMaker& maker = makers_.emplace_back(step, places_, parts_);
      const bool returns = returns_of(step) != cpu_backend::Returns::nothing;
      module.steps.push_back({.name = step.name,
                              .pointers = static_cast<int>(step.arguments.size() + step.results.size()) - returns,
                              .returns = returns_of(step),
                              .step = maker.make()});
      workspace_bytes_ = std::max(workspace_bytes_, maker.workspace_bytes());
    }
    return finish(module, isa);
  }

 private:
  cpu_backend::Isa chosen_isa() const {
    return all_.instruction_set.empty() ? cpu_backend::isa() : isa_named(all_.instruction_set);
  }
  /// Throws errors that name the option, not the environment variable.
  static cpu_backend::Isa isa_named(std::string_view name) {
    using cpu_backend::Isa;
    constexpr std::string_view option = "export_object: instruction_set (--instruction-set of gradus compile): ";
    const std::optional<Isa> widest = cpu_backend::widest_isa();
    for (const Isa isa : {Isa::avx2, Isa::avx512}) {
      if (name != cpu_backend::name(isa)) continue;
      require<Unavailable>(widest && isa <= *widest, option, "this processor has no ", name,
                           ", so the object could not be tried here; expected ",
                           widest ? cpu_backend::name(*widest) : "a machine with AVX2, FMA and F16C");
      return isa;
    }
    throw InvalidArgument(text(option, "expected avx2 or avx512, given '", printable(name, true),
                               "'; leave it out for the widest of this processor"));
  }

  void lay_out() {
    Space state;
    for (const ObjectField& field : all_.fields) places_.fields.push_back(state.take(bytes_of(field.spec)));
    if (std::ranges::any_of(all_.steps, &ObjectStep::draws)) places_.random_state = state.take(sizeof(std::uint64_t));
    places_.failure = state.take(3 * sizeof(std::int64_t));
    places_.workspace = state.end;
  }

  ObjectText finish(cpu_backend::ObjectModule& module, cpu_backend::Isa isa) {
    const std::int64_t bytes = places_.workspace + workspace_bytes_;
    const std::string set(cpu_backend::name(isa));
    if (!has_weights_file()) module.init = init_image(bytes);
    module.named = {{"gradus_object_facts", facts_image(isa)}, {"gradus_tiles_" + set, tiles_image(isa)}};
    module.symbol_of = [this](KernelFunction run) {
      const auto found = parts_.names.find(run);
      return found != parts_.names.end() ? found->second : symbol_of(run);
    };
    std::vector<std::string> objects = parts_.objects;
    objects.push_back(object_of_module(module, isa));
    std::vector<std::string> functions{all_.name + "_supported"};
    for (const ObjectStep& step : all_.steps) functions.push_back(step.name);
    if (!has_weights_file()) functions.push_back(all_.name + "_init");
    return {linked(objects, functions, isa, title_),
            to_c({.all = all_,
                  .places = places_,
                  .workspace_bytes = workspace_bytes_,
                  .bytes = bytes,
                  .failures = parts_.failures,
                  .instruction_set = set}),
            has_weights_file() ? weights() : std::string()};
  }
  bool has_weights_file() const { return !all_.weights_file.empty(); }
  /// The state as NAME_init would write it, up to the workspace.
  std::string weights() const {
    std::string made(at(places_.workspace), 0);
    for (std::size_t k = 0; k < all_.fields.size(); ++k)
      if (const auto size = at(bytes_of(all_.fields[k].spec)))
        std::memcpy(made.data() + places_.fields[k], all_.fields[k].now->host(), size);
    if (places_.random_state >= 0)
      std::memcpy(made.data() + places_.random_state, &all_.random_state, sizeof all_.random_state);
    return made;
  }
  Image init_image(std::int64_t bytes) {
    Init init{.bytes = bytes};
    TableImage<CopyEntry> values;
    for (std::size_t k = 0; k < all_.fields.size(); ++k) {
      const std::int64_t size = bytes_of(all_.fields[k].spec);
      add_copy_of(values, {Address::state, places_.fields[k]}, parts_.bytes_of(all_.fields[k].now, size), size);
    }
    if (places_.random_state >= 0)
      add_copy_of(values, {Address::state, places_.random_state},
                  std::make_shared<const DataImage>(DataImage::of_words(&all_.random_state, 1)), sizeof(std::uint64_t));
    DataImage image = DataImage::of_bytes(&init, sizeof init);
    values.set(image, init, &Init::values);
    return std::make_shared<const DataImage>(std::move(image));
  }
  /// The table of tiles with the entries that the step calls.
  Image tiles_image(cpu_backend::Isa isa) {
    using namespace cpu_backend;
    const TileTable& table = isa == Isa::avx512 ? gradus_tiles_avx512 : gradus_tiles_avx2;
    KernelFunction entries[tile_entries];
    static_assert(sizeof entries == sizeof table);
    std::memcpy(entries, &table, sizeof table);
    DataImage image;
    image.bytes.resize(sizeof table);
    for (std::size_t i = 0; i < tile_entries; ++i) {
      if (!parts_.tiles.test(i)) continue;
      internal_check(entries[i] != nullptr, "a step calls tile ", i, " of ", name(isa), ", which there is not");
      parts_.names.emplace(entries[i], text("gradus_tiles_", name(isa), "_", i));
      image.pointers.push_back({.offset = i * sizeof(void*), .code = entries[i]});
    }
    return std::make_shared<const DataImage>(std::move(image));
  }
  static Image facts_image(cpu_backend::Isa isa) {
    const bool wide = isa == cpu_backend::Isa::avx512;
    const Facts facts{wide, wide && cpu_backend::has_pair_products(), wide && cpu_backend::prefers_pair_products(),
                      wide && cpu_backend::prefers_near_panels(), sysconf(_SC_LEVEL2_CACHE_SIZE)};
    return std::make_shared<const DataImage>(DataImage::of_bytes(&facts, sizeof facts));
  }

  const ObjectSteps& all_;
  const std::string title_;
  StatePlaces places_;
  ObjectParts parts_;
  std::deque<StepMaker> makers_;
  std::int64_t workspace_bytes_ = 0;  // of the step that needs most
};

}  // namespace
}  // namespace object

ObjectText make_object(const ObjectSteps& all) { return object::ObjectMaker(all).make(); }

}  // namespace gradus
