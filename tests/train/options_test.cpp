/// Every number of every option struct: what its ranges() leave out is an InvalidArgument that names it, wherever the
/// options are used; what they let in does no harm. tests/house looks that no struct is missing here.
#include <gtest/gtest.h>
#include <algorithm>
#include <chrono>
#include <cmath>
#include <fstream>
#include <functional>
#include <utility>
#include "gradus/gradus.h"
#include "tests/errors.h"
#include "tests/odd_numbers.h"
#include "tests/test_directory.h"

namespace gradus::options_test {
namespace {

/// `use` takes the options as a program would. `good` has an element in each list of numbers.
template <class Options, class Use> void try_numbers(std::string_view name, const Options& good, const Use& use) {
  SCOPED_TRACE(name);
  ASSERT_NO_THROW(use(good));
  for (const Allowed& range : Options::ranges()) {
    int tried = 0;
    for (const double value : odd_numbers) {
      Options options = good;
      std::string field;
      reflect::for_each_field(options, [&](std::string_view each, auto& place) {
        if (field.empty() && range.names(each) && set_number(place, value)) field = each;
      });
      if (field.empty()) continue;
      ++tried;
      try {
        use(options);
        EXPECT_TRUE(range.holds(value)) << field << " = " << value << " was accepted";
      } catch (const Error& error) {
        if (range.holds(value)) continue;  // another rule, such as that of two options together
        EXPECT_TRUE(dynamic_cast<const InvalidArgument*>(&error)) << error.what();
        expect_says(error.what(), field);
      }
    }
    EXPECT_GT(tried, 3) << range.fields;
  }
  // The same for each name of a row, with what the row leaves out.
  for (const Allowed& range : Options::ranges())
    reflect::for_each_field(good, [&](std::string_view each, const auto&) {
      if (!range.names(each)) return;
      for (const double value : odd_numbers) {
        if (range.holds(value)) continue;
        Options options = good;
        bool is_set = false;
        reflect::for_each_field(options, [&](std::string_view other, auto& place) {
          if (other == each) is_set = set_number(place, value);
        });
        if (!is_set) continue;
        try {
          use(options);
          ADD_FAILURE() << each << " = " << value << " was accepted";
        } catch (const InvalidArgument& error) { expect_says(error.what(), std::string(each)); }
      }
    });
}

/// An argument that is no option: what the range leaves out is an InvalidArgument.
void try_argument(std::string_view name, const Allowed& range, const std::function<void(double)>& use) {
  SCOPED_TRACE(name);
  for (const double value : odd_numbers) try {
      use(value);
      EXPECT_TRUE(range.holds(value)) << value << " was accepted";
    } catch (const Error& error) {
      const bool may_fail = range.holds(value);  // by another rule
      EXPECT_TRUE(may_fail || dynamic_cast<const InvalidArgument*>(&error)) << error.what();
    }
}

TEST(Options, OfOptimizers) {
  try_numbers("LossScale", LossScaleOptions{}, [](const auto& o) { LossScale{o}; });
  try_numbers("SGD", SGDOptions{}, [](const auto& o) { SGD{o}; });
  try_numbers("Adam", AdamOptions{}, [](const auto& o) { Adam{o}; });
  try_numbers("AdamW", AdamWOptions{}, [](const auto& o) { AdamW{o}; });
  try_numbers("Nadam", AdamOptions{}, [](const auto& o) { Nadam{o}; });
  try_numbers("Adamax", AdamOptions{}, [](const auto& o) { Adamax{o}; });
  try_numbers("Lamb", AdamOptions{}, [](const auto& o) { Lamb{o}; });
  try_numbers("RMSprop", RMSpropOptions{}, [](const auto& o) { RMSprop{o}; });
  try_numbers("Adagrad", AdagradOptions{}, [](const auto& o) { Adagrad{o}; });
  try_numbers("Adadelta", AdadeltaOptions{}, [](const auto& o) { Adadelta{o}; });
  try_numbers("Ftrl", FtrlOptions{}, [](const auto& o) { Ftrl{o}; });
  try_numbers("Lion", LionOptions{}, [](const auto& o) { Lion{o}; });
  try_numbers("add_parameter_group", ParameterGroupOptions{}, [](const auto& o) {
    Variable w(constant({1.0}));
    Adam optimizer;
    optimizer.add_parameter_group(Variables{w}, o);
  });
  try_argument("set_learning_rate", Allowed::not_negative(""), [](double rate) { Adam().set_learning_rate(rate); });
}

TEST(Options, OfSchedules) {
  try_numbers("CosineDecay", CosineDecayOptions{0.1, 100}, [](const auto& o) { CosineDecay{o}; });
  try_numbers("CosineDecayRestarts", CosineDecayRestartsOptions{0.1, 100},
              [](const auto& o) { CosineDecayRestarts{o}; });
  try_numbers("PolynomialDecay", PolynomialDecayOptions{0.1, 100}, [](const auto& o) { PolynomialDecay{o}; });
  try_numbers("InverseTimeDecay", InverseTimeDecayOptions{0.1, 100, 0.5}, [](const auto& o) { InverseTimeDecay{o}; });
  try_numbers("ExponentialDecay", ExponentialDecayOptions{0.1, 100, 0.5}, [](const auto& o) { ExponentialDecay{o}; });
  try_numbers("OneCycle", OneCycleOptions{0.1, 100}, [](const auto& o) { OneCycle{o}; });
  try_argument("PiecewiseConstantDecay", Allowed::not_negative(""),
               [](double rate) { PiecewiseConstantDecay({10}, {0.1, rate}); });
}

TEST(Options, OfLayers) {
  try_numbers("LSTM", RecurrentOptions{}, [](const auto& o) { LSTM(3, o); });
  try_numbers("Conv1D", Conv1DOptions{}, [](const auto& o) { Conv1D(6, 3, o); });
  try_numbers("Conv2D", ConvOptions{}, [](const auto& o) { Conv2D(6, 3, o); });
  try_numbers("Conv3D", Conv3DOptions{}, [](const auto& o) { Conv3D(6, 3, o); });
  try_numbers("DepthwiseConv2D", ConvOptions{}, [](const auto& o) { DepthwiseConv2D(3, o); });
  try_numbers("SeparableConv2D", ConvOptions{}, [](const auto& o) { SeparableConv2D(6, 3, o); });
  try_numbers("Conv2DTranspose", ConvOptions{}, [](const auto& o) { Conv2DTranspose(6, 3, o); });
  try_numbers("ActivityRegularization", ActivityRegularizationOptions{},
              [](const auto& o) { ActivityRegularization{o}; });
  try_numbers("Attention", DotAttentionOptions{}, [](const auto& o) { Attention{o}; });
  try_numbers("AdditiveAttention", AdditiveAttentionOptions{}, [](const auto& o) { AdditiveAttention{o}; });
  try_numbers("MultiHeadAttention", AttentionOptions{}, [](const auto& o) { MultiHeadAttention(2, 4, o); });
  try_numbers("KeyValueCache", KeyValueCacheOptions{}, [](const auto& o) { KeyValueCache{o}; });
  try_numbers("choose_token", TokenChoice{}, [](const auto& o) { choose_token(ones({2, 3}), o); });
  try_numbers("generate", GenerateOptions{.stop = {0}}, [](GenerateOptions o) {
    const Sequential model{Embedding(3, 2), Dense(3)};
    o.stop.insert(o.stop.end(), {0, 1, 2});  // so that it ends with the first token
    generate(model, ones({1, 1}, i32), o);
  });
  try_numbers("BatchNormalization", BatchNormalizationOptions{}, [](const auto& o) { BatchNormalization{o}; });
  try_numbers("LayerNormalization", LayerNormalizationOptions{}, [](const auto& o) { LayerNormalization{o}; });
  try_numbers("RMSNormalization", RMSNormalizationOptions{}, [](const auto& o) { RMSNormalization{o}; });
  try_numbers("GroupNormalization", GroupNormalizationOptions{}, [](const auto& o) { GroupNormalization(2, o); });
  try_numbers("SpectralNormalization", SpectralNormalizationOptions{},
              [](const auto& o) { SpectralNormalization(Dense(3), o); });
  try_numbers("ReLU", ReLUOptions{}, [](const auto& o) { ReLU{o}; });
  try_numbers("RandomBrightness", RandomColorOptions{}, [](const auto& o) { RandomBrightness({-0.1, 0.1}, o); });
  try_numbers("RandomContrast", RandomColorOptions{}, [](const auto& o) { RandomContrast({-0.1, 0.1}, o); });
}

TEST(Options, ArgumentsOfLayers) {
  const Allowed rate = Allowed::share_below_one("");
  try_argument("Dropout", rate, [](double x) { Dropout{x}; });
  try_argument("SpatialDropout1D", rate, [](double x) { SpatialDropout1D{x}; });
  try_argument("SpatialDropout2D", rate, [](double x) { SpatialDropout2D{x}; });
  try_argument("SpatialDropout3D", rate, [](double x) { SpatialDropout3D{x}; });
  try_argument("GaussianDropout", rate, [](double x) { GaussianDropout{x}; });
  try_argument("AlphaDropout", rate, [](double x) { AlphaDropout{x}; });
  try_argument("GaussianNoise", Allowed::not_negative(""), [](double x) { GaussianNoise{x}; });
  try_argument("LeakyReLU", Allowed::not_negative(""), [](double x) { LeakyReLU{x}; });
  try_argument("ELU", Allowed::finite(""), [](double x) { ELU{x}; });
  try_argument("L1", Allowed::not_negative(""), [](double x) { regularizers::L1(x); });
  try_argument("L2", Allowed::not_negative(""), [](double x) { regularizers::l2(x); });
  try_argument("L1L2", Allowed::not_negative(""), [](double x) { regularizers::L1L2(x, 0.1); });
  try_argument("L1L2", Allowed::not_negative(""), [](double x) { regularizers::L1L2(0.1, x); });
  try_argument("OrthogonalRegularizer", Allowed::not_negative(""),
               [](double x) { regularizers::OrthogonalRegularizer(x); });
  try_argument("initializers::normal", Allowed::not_negative(""), [](double x) { initializers::normal(x); });
  try_argument("initializers::uniform", Allowed::positive(""), [](double x) { initializers::uniform(x); });
  try_argument("initializers::constant", Allowed::finite(""), [](double x) { initializers::constant(x); });
  const Tensor w = ones({2, 3});
  try_argument("max_norm", Allowed::not_negative(""), [&](double x) { constraints::max_norm(w, x); });
  try_argument("min_max_norm", Allowed::not_negative(""), [&](double x) { constraints::min_max_norm(w, x, 1e300); });
  try_argument("min_max_norm, rate", Allowed::share(""), [&](double x) { constraints::min_max_norm(w, 0, 1, x); });
  try_argument("clip_by_norm", Allowed::not_negative(""), [&](double x) { clip_by_norm(w, x); });
}

/// Sizes of layers: whole numbers from 1 on.
TEST(Options, SizesOfLayers) {
  const auto try_size = [](std::string_view name, const std::function<void(std::int64_t)>& make) {
    SCOPED_TRACE(name);
    ASSERT_NO_THROW(make(2));
    for (const std::int64_t size : {std::int64_t{0}, std::int64_t{-1}, std::numeric_limits<std::int64_t>::min()})
      EXPECT_THROW(make(size), InvalidArgument) << size;
  };
  try_size("Dense", [](std::int64_t n) { Dense{n}; });
  try_size("Conv2D", [](std::int64_t n) { Conv2D(n, 3); });
  try_size("Conv2D, kernel", [](std::int64_t n) { Conv2D(2, n); });
  try_size("Conv2D, kernel", [](std::int64_t n) { Conv2D(2, {2, n}); });
  try_size("Conv2D, strides", [](std::int64_t n) { Conv2D(2, 3, {.strides = n}); });
  try_size("Conv2D, dilation", [](std::int64_t n) { Conv2D(2, 3, {.dilation = {n, 1}}); });
  try_size("Conv1D, strides", [](std::int64_t n) { Conv1D(2, 3, {.strides = n}); });
  try_size("Conv3D, strides", [](std::int64_t n) { Conv3D(2, 3, {.strides = n}); });
  try_size("MaxPooling2D", [](std::int64_t n) { MaxPooling2D{n}; });
  try_size("MaxPooling2D, strides", [](std::int64_t n) { MaxPooling2D(2, {.strides = n}); });
  try_size("AveragePooling1D", [](std::int64_t n) { AveragePooling1D(2, {.strides = n}); });
  try_size("UpSampling2D", [](std::int64_t n) { UpSampling2D{n}; });
  try_size("Embedding", [](std::int64_t n) { Embedding(n, 3); });
  try_size("Embedding, width", [](std::int64_t n) { Embedding(3, n); });
  try_size("PositionEmbedding", [](std::int64_t n) { PositionEmbedding{n}; });
  try_size("LSTM", [](std::int64_t n) { LSTM{n}; });
  try_size("GRU", [](std::int64_t n) { GRU{n}; });
  try_size("SimpleRNN", [](std::int64_t n) { SimpleRNN{n}; });
  try_size("ConvLSTM2D", [](std::int64_t n) { ConvLSTM2D(n, 3); });
  try_size("MultiHeadAttention", [](std::int64_t n) { MultiHeadAttention(n, 3); });
  try_size("MultiHeadAttention, key_dim", [](std::int64_t n) { MultiHeadAttention(2, n); });
  try_size("RandomCrop", [](std::int64_t n) { RandomCrop(n, 2); });
  try_size("CenterCrop", [](std::int64_t n) { CenterCrop(2, n); });
  try_size("MeanIoU", [](std::int64_t n) { MeanIoU{n}; });
  try_size("F1Score", [](std::int64_t n) { F1Score{n}; });
}

TEST(Options, OfLosses) {
  const Tensor y = constant({{1.0, 0.0}, {0.0, 1.0}}), p = constant({{0.7, 0.3}, {0.4, 0.6}});
  const Tensor labels = constant({0, 1});
  try_numbers("CategoricalCrossentropy", SmoothingOptions{},
              [](const auto& o) { CategoricalCrossentropy(from_logits, o); });
  try_numbers("BinaryCrossentropy", SmoothingOptions{}, [](const auto& o) { BinaryCrossentropy(from_logits, o); });
  try_numbers("SparseCategoricalCrossentropy", IgnoreOptions{},
              [](const auto& o) { SparseCategoricalCrossentropy(from_logits, o); });
  try_numbers("Huber", HuberOptions{}, [](const auto& o) { Huber{o}; });
  try_numbers("huber", HuberOptions{}, [&](const auto& o) { huber(y, p, o); });
  try_numbers("BinaryFocalCrossentropy", BinaryFocalOptions{},
              [](const auto& o) { BinaryFocalCrossentropy(from_logits, o); });
  try_numbers("CategoricalFocalCrossentropy", CategoricalFocalOptions{},
              [](const auto& o) { CategoricalFocalCrossentropy(from_logits, o); });
  try_numbers("Dice", OverlapOptions{.axis = {0}}, [](const auto& o) { Dice{o}; });
  try_numbers("Tversky", TverskyOptions{.axis = {0}}, [](const auto& o) { Tversky{o}; });
  try_numbers("tversky", TverskyOptions{.axis = {0}}, [&](const auto& o) { tversky(y, p, o); });
  try_numbers("Circle", CircleOptions{}, [](const auto& o) { Circle{o}; });
  try_numbers("circle", CircleOptions{}, [&](const auto& o) { circle(labels, p, o); });
  try_numbers("CategoricalGeneralizedCrossEntropy", GeneralizedOptions{},
              [](const auto& o) { CategoricalGeneralizedCrossEntropy{o}; });
  try_numbers("categorical_generalized_cross_entropy", GeneralizedOptions{},
              [&](const auto& o) { categorical_generalized_cross_entropy(labels, p, o); });
  try_numbers("CTC", CtcOptions{}, [](const auto& o) { CTC{o}; });
  const Tensor words = ones({1, 1}, i32), steps = zeros({1, 2, 3}), one = constant({1});
  try_numbers("ctc_loss", CtcLossOptions{}, [&](const auto& o) { ctc_loss(words, steps, one, one, o); });
  try_numbers("ctc_decode", CtcDecodeOptions{}, [&](const auto& o) { ctc_decode(steps, one, o); });
  try_numbers("CosineSimilarity", CosineSimilarityOptions{}, [](const auto& o) { CosineSimilarity{o}; });
}

TEST(Options, OfMetrics) {
  try_numbers("SparseTopKCategoricalAccuracy", TopKAccuracyOptions{},
              [](const auto& o) { SparseTopKCategoricalAccuracy{o}; });
  try_numbers("TopKCategoricalAccuracy", TopKAccuracyOptions{}, [](const auto& o) { TopKCategoricalAccuracy{o}; });
  try_numbers("TruePositives", ThresholdOption{}, [](const auto& o) { TruePositives{o}; });
  try_numbers("Precision", ThresholdOption{}, [](const auto& o) { Precision{o}; });
  try_numbers("Recall", ThresholdOption{}, [](const auto& o) { Recall{o}; });
  try_numbers("BinaryIoU", ThresholdOption{}, [](const auto& o) { BinaryIoU{o}; });
  try_numbers("AUC", AUCOptions{}, [](const auto& o) { AUC{o}; });
  try_numbers("PrecisionAtRecall", OperatingPointOptions{}, [](const auto& o) { PrecisionAtRecall(0.5, o); });
  try_numbers("FBetaScore", FBetaOptions{}, [](const auto& o) { FBetaScore(3, o); });
  try_numbers("R2Score", R2ScoreOptions{}, [](const auto& o) { R2Score{o}; });
  try_argument("SensitivityAtSpecificity", Allowed::share(""), [](double x) { SensitivityAtSpecificity{x}; });
  try_argument("RecallAtPrecision", Allowed::share(""), [](double x) { RecallAtPrecision{x}; });
}

TEST(Options, OfDataSets) {
  const Dataset<1> numbers = data::range(12);
  try_numbers("shuffle", ShuffleOptions{}, [&](const auto& o) { numbers.shuffle(o); });
  try_numbers("map", MapOptions{}, [&](const auto& o) { numbers.map([](Tensor x) { return x + 1; }, o); });
  try_numbers("prefetch", PrefetchOptions{}, [&](const auto& o) { numbers.prefetch(o); });
  try_numbers("interleave", InterleaveOptions{},
              [&](const auto& o) { numbers.interleave([](Tensor) { return data::range(2); }, o); });
  try_numbers("padded_batch", PaddedBatchOptions{.padding_values = {0}},
              [&](const auto& o) { numbers.padded_batch(2, o); });
  try_numbers("bucket_by_sequence_length", BucketOptions{.bucket_boundaries = {3}, .bucket_batch_sizes = {2, 2}},
              [&](const auto& o) { numbers.bucket_by_sequence_length([](Tensor x) { return x; }, o); });
  try_numbers("window", WindowingOptions{.shift = 1}, [&](const auto& o) { numbers.window(2, o); });
  try_numbers("sample_from_datasets", SampleOptions{},
              [&](const auto& o) { data::sample_from_datasets({numbers, numbers}, {}, o); });
  try_numbers("rejection_resample", RejectionOptions{.initial_dist = {0.5, 0.5}},
              [&](const auto& o) { numbers.rejection_resample([](Tensor x) { return x; }, {1, 1}, o); });
  try_numbers("timeseries_dataset_from_array", data::TimeseriesOptions{.start_index = 1, .end_index = 8},
              [&](const auto& o) { data::timeseries_dataset_from_array(ones({9, 1}), 2, o); });
  const std::vector<std::byte> sound = encode_wav(ones({2, 1}), 8000);
  try_numbers("decode_wav", WavOptions{}, [&](auto o) {
    o.desired_samples = std::min(o.desired_samples, std::int64_t{9});
    o.desired_channels = std::min(o.desired_channels, std::int64_t{9});
    decode_wav(sound, o);
  });
  const EmptyTestDirectory directory;
  std::filesystem::create_directories(directory.path() / "a");
  std::ofstream(directory.path() / "a" / "b.png") << "none";  // is read when an element is
  try_numbers("images_from_directory", data::ImageOptions{.height = 2, .width = 2},
              [&](const auto& o) { data::images_from_directory(directory.path(), o); });
  try_numbers("parse_csv", CsvOptions{.label = "y"}, [](const auto& o) { parse_csv("x,y\n1,2\n", "text", o); });
}

TEST(Options, OfText) {
  const auto weighted = [](auto options) {
    options.output_mode = OutputMode::tf_idf;
    options.idf_weights = {1};
    return options;
  };
  const StringLookupOptions words{.max_tokens = 9, .vocabulary = {"a"}};
  try_numbers("StringLookup", weighted(words), [](const auto& o) { StringLookup{o}; });
  const IntegerLookupOptions numbers{.max_tokens = 9, .mask_token = 7, .vocabulary = {5}};
  try_numbers("IntegerLookup", weighted(numbers), [](const auto& o) { IntegerLookup{o}; });
  const TextVectorizationOptions texts{.max_tokens = 9, .vocabulary = {"a"}};
  try_numbers("TextVectorization", weighted(texts), [](const auto& o) { TextVectorization{o}; });
  const EmptyTestDirectory folder;
  std::filesystem::create_directories(folder.path() / "a");
  for (const char* name : {"b.txt", "c.txt"}) std::ofstream(folder.path() / "a" / name) << "text";
  try_numbers("text_dataset_from_directory",
              data::TextDirectoryOptions{.seed = 1, .validation_split = 0.5, .subset = data::Subset::validation},
              [&](const auto& o) { data::text_dataset_from_directory(folder.path(), o); });
  try_numbers("Discretization", DiscretizationOptions{.bin_boundaries = {1}}, [](const auto& o) { Discretization{o}; });
  Tokenizer tokenizer = Tokenizer::from_json(R"({"model": {"type": "WordLevel", "vocab": {"a": 0}}})", "test");
  try_numbers("truncation", TruncationOptions{.max_length = 3}, [&](const auto& o) { tokenizer.enable_truncation(o); });
  try_numbers("padding", TokenPaddingOptions{}, [&](const auto& o) { tokenizer.enable_padding(o); });
}

TEST(Options, OfTraining) {
  const Tensor x = ones({8, 2});
  const Dataset<2> data = data::from_tensor_slices(x, ones({8, 1})).batch(4);
  const auto model = [] { return Sequential{Dense(1)}; };
  try_numbers("fit", FitOptions{.verbose = false, .fast_dev_run = 1}, [&](auto o) {
    if (o.fast_dev_run > 1) o.fast_dev_run = 1;
    Sequential m = model();
    SGD optimizer;
    fit(m, optimizer, MeanSquaredError(), data, o);
  });
  const std::vector<float> numbers(8);
  try_numbers("borrow", BorrowOptions{.strides = {1}, .padded = true},
              [&](const auto& o) { borrow(std::span<const float>(numbers), {2}, o); });
  try_numbers("predict", PredictOptions{}, [&](const auto& o) { predict(model(), x, o); });
  try_numbers("early_stopping", EarlyStoppingOptions{}, [](const auto& o) { early_stopping(o); });
  try_numbers("reduce_lr_on_plateau", ReduceLROnPlateauOptions{}, [](const auto& o) { reduce_lr_on_plateau(o); });
  try_argument("time_limit", {.fields = "", .least = 0},
               [](double x) { time_limit(std::chrono::duration<double>(x)); });
  const EmptyTestDirectory directory;
  try_numbers("tensorboard", TensorBoardOptions{}, [&](const auto& o) { tensorboard(directory.path(), o); });
  try_numbers("Checkpoints", CheckpointOptions{.directory = directory.path()}, [&](const auto& o) {
    Sequential m = model();
    m.build({f32, {any_size, 2}});
    SGD optimizer;
    Checkpoints(o, m, optimizer);
  });
  try_numbers("prune_low_magnitude", PruningOptions{.final_sparsity = 0.5, .end_step = 10}, [&](const auto& o) {
    Sequential m = model();
    prune_low_magnitude(m, o);
  });
  Sequential built = model();
  built.build({f32, {any_size, 2}});
  try_numbers("low_rank", LowRankOptions{.energy = 0.5}, [&](const auto& o) { low_rank(built, o); });
}

TEST(Options, OfTuning) {
  const Dataset<2> data = data::from_tensor_slices(ones({8, 2}), ones({8, 1}));
  const Sequential model{Dense(1)};
  const SGD optimizer;
  try_numbers("learning_rate_range_test", LearningRateRangeOptions{.steps = 3}, [&](auto o) {
    if (o.steps > 10) o.steps = 3;
    learning_rate_range_test(model, optimizer, MeanSquaredError(), data.batch(4), o);
  });
  try_numbers("tune_batch_size", BatchSizeOptions{.min_batch_size = 2, .max_batch_size = 4, .steps = 1}, [&](auto o) {
    if (o.steps > 10) o.steps = 1;
    tune_batch_size(model, optimizer, MeanSquaredError(), [&](std::int64_t size) { return data.batch(size); }, o);
  });
  try_numbers("advise", AdviseOptions{.max_seconds = 1e-6, .levers = {"prefetch"}}, [&](auto o) {
    if (std::isfinite(o.max_seconds) && o.max_seconds > 1e-6) o.max_seconds = 1e-6;
    advise(model, optimizer, MeanSquaredError(), data.batch(4), o);
  });
  try_numbers("uniform", RangeOptions{}, [](const auto& o) { SearchSpace().uniform("a", 0, 1, o); });
  try_numbers("integers", IntegerOptions{}, [](const auto& o) { SearchSpace().integers("a", 0, 9, o); });
  try_numbers("grid_search", SearchOptions{}, [](auto o) {
    if (o.parallel > 2 && o.parallel <= 1024) o.parallel = 2;
    SearchSpace space;
    space.integers("a", 0, 1);
    grid_search(space, [](const SearchTrial&) { return 0.0; }, o);
  });
}

TEST(Options, OfFunctionsAndGradients) {
  try_numbers("MirroredStrategy", MirroredOptions{.micro_shards = 2},
              [](const auto& o) { MirroredStrategy(o).run([](Tensor x) { return x; }, ones({3})); });
  try_numbers("MultiWorkerMirroredStrategy", MultiWorkerOptions{.micro_shards = 2},
              [](const auto& o) { MultiWorkerMirroredStrategy(Cluster::simulated(2), o); });
  try_numbers("ParameterServerStrategy", ParameterServerOptions{.max_staleness = 2}, [](const auto& o) {
    const DeviceScope on_processor(cpu());
    ParameterServerStrategy(Cluster::simulated(2, 1), o);
  });
  try_numbers("function", FunctionOptions{}, [](const auto& o) { function([](Tensor x) { return x; }, o); });
  const Tensor x = ones({4, 2});
  try_numbers("map_batches", MapBatchesOptions{.batch_size = 2},
              [&](const auto& o) { map_batches([](Tensor a) { return a * 2; }, x, o); });
  Variable w(ones({2, 1}));
  try_numbers("accumulated_gradients", AccumulateOptions{.micro_batch = 2}, [&](const auto& o) {
    accumulated_gradients([&](Tensor a) { return Loss::mean(squeeze(matmul(a, w), {1})); }, Variables{w}, {x}, o);
  });
  const auto slope = [](Tensor x) { return reduce_sum(square(x - 1)); };
  for (const MinimizeMethod method : {MinimizeMethod::bfgs, MinimizeMethod::l_bfgs_b, MinimizeMethod::newton_cg})
    try_numbers("minimize", MinimizeOptions<Tensor>{.method = method},
                [&](const auto& o) { minimize(slope, constant({3.0, 2.0}, f64), o); });
  try_numbers("least_squares", LeastSquaresOptions<Tensor>{},
              [](const auto& o) { least_squares([](Tensor x) { return x - 1; }, constant({3.0, 2.0}, f64), o); });
  try_numbers("jacobian", JacobianOptions{}, [](const auto& o) {
    const Tensor at = ones({2});
    GradientTape tape;
    tape.watch(at);
    const Tensor y = square(at);
    tape.jacobian(y, at, o);
  });
  try_numbers("while_loop", WhileOptions{}, [](const auto& o) {
    while_loop([](Tensor a) { return a < 3; }, [](Tensor a) { return a + 1; }, constant(0), o);
  });
}

TEST(Options, OfRandomNumbers) {
  try_numbers("random::normal", random::NormalOptions{}, [](const auto& o) { random::normal({2}, o); });
  try_numbers("random::truncated_normal", random::NormalOptions{},
              [](const auto& o) { random::truncated_normal({2}, o); });
  try_numbers("random::uniform", random::UniformOptions{.high = 1e30}, [](const auto& o) { random::uniform({2}, o); });
  try_numbers("random::integers", random::IntegerOptions{}, [](const auto& o) { random::integers({2}, o); });
}

}  // namespace
}  // namespace gradus::options_test
