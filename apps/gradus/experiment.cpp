/// One part after the other.
#include "apps/gradus/experiment.h"

namespace gradus::command {

Experiment make_experiment(const TrainConfig& config, const Data& data) {
  set_seed(static_cast<std::uint64_t>(config.seed));
  Sequential model = make_model(config, data.outputs());
  model.build(data.input);
  Dataset<2> train = batches(data.train.raw.shuffle(), config.data, config.batch_size);
  Dataset<2> test = batches(data.test.raw, config.data, test_batch(config.data));
  adapt(model, config, train);
  FitOptions options{
      .epochs = static_cast<int>(config.epochs), .metrics = {make_metric(data)}, .micro_batch = config.micro_batch};
  if (config.validate_each_epoch) options.validation = test;
  return {std::move(model),        make_optimizer(config.optimizer),
          make_loss(config, data), std::move(train),
          std::move(test),         std::move(options)};
}

}  // namespace gradus::command
