/// Rows of normalizations, losses and layers.
#include <memory>
#include "bench/ops/row.h"
#include "gradus/base/rooms.h"
#include "gradus/nn/attention.h"
#include "gradus/nn/class_losses.h"
#include "gradus/nn/convolutions.h"
#include "gradus/nn/embedding.h"
#include "gradus/nn/layers.h"
#include "gradus/nn/losses.h"
#include "gradus/nn/normalization.h"
#include "gradus/nn/recurrent.h"
#include "gradus/nn/regression_losses.h"
#include "gradus/ops/crossentropy.h"
#include "gradus/ops/elementwise.h"
#include "gradus/ops/normalization.h"
#include "gradus/ops/shape.h"

namespace gradus::bench {
namespace {

using C = const Case&;

void add_normalizations(Rows& rows) {
  const std::vector<std::string> table{"f32[n,256]", "f32[256]", "f32[256]"};
  const std::vector<std::string> pixels{"f32[n,16,16,64]", "f32[64]", "f32[64]"};
  const Rows added = {
      {"layer_normalization", table, rows_of_256,
       [](C x) { return layer_normalization(x[0], {.scale = x[1], .offset = x[2]}); },
       "F.layer_norm(a, (256,), b, c, 1e-3)",
       "(a - a.mean(-1, keepdims=True)) * lax.rsqrt(a.var(-1, keepdims=True) + 1e-3) * b + c"},
      {"rms_normalization",
       {"f32[n,256]", "f32[256]"},
       rows_of_256,
       [](C x) { return rms_normalization(x[0], {.scale = x[1]}); },
       "F.rms_norm(a, (256,), b, 1e-3)",
       "a * lax.rsqrt((a * a).mean(-1, keepdims=True) + 1e-3) * b"},
      {"group_normalization",
       pixels,
       {1, 8, 128},
       [](C x) { return group_normalization(x[0], 8, {.scale = x[1], .offset = x[2]}); },
       "F.group_norm(a.permute(0, 3, 1, 2), 8, b, c, 1e-3).permute(0, 2, 3, 1)",
       ""},
      {"instance_normalization",
       pixels,
       {1, 8, 128},
       [](C x) { return instance_normalization(x[0], {.scale = x[1], .offset = x[2]}); },
       "F.instance_norm(a.permute(0, 3, 1, 2), weight=b, bias=c, eps=1e-3).permute(0, 2, 3, 1)",
       "(a - a.mean((1, 2), keepdims=True)) * lax.rsqrt(a.var((1, 2), keepdims=True) + 1e-3) * b + c"},
      {"batch_normalization",
       pixels,
       {1, 8, 128},
       [](C x) {
         const Moments of = moments(x[0], {.axis = {0, 1, 2}});
         return batch_normalization(x[0], of.mean, of.variance, {.scale = x[1], .offset = x[2]});
       },
       "F.batch_norm(a.permute(0, 3, 1, 2), None, None, b, c, True, 0.1, 1e-3).permute(0, 2, 3, 1)",
       "(a - a.mean((0, 1, 2))) * lax.rsqrt(a.var((0, 1, 2)) + 1e-3) * b + c"},
      {"moments",
       {"f32[n,256]"},
       rows_of_256,
       [](C x) {
         const Moments of = moments(x[0], {.axis = {1}});
         return std::vector{of.mean, of.variance};
       },
       "torch.var_mean(a, 1, correction=0)[::-1]",
       "(a.mean(1), a.var(1))"},
      {"local_response_normalization",
       {"f32[n,16,16,64]"},
       {1, 8, 128},
       [](C x) { return local_response_normalization(x[0], {.depth_radius = 2, .alpha = 0.1 / 5, .beta = 0.75}); },
       "F.local_response_norm(a.permute(0, 3, 1, 2), 5, 0.1, 0.75, 1.0).permute(0, 2, 3, 1)",
       ""},
      {"l2_normalize",
       {"f32[n,256]"},
       rows_of_256,
       [](C x) { return l2_normalize(x[0], {1}); },
       "F.normalize(a)",
       "a / jnp.linalg.norm(a, axis=1, keepdims=True)"},
  };
  rows.insert(rows.end(), added.begin(), added.end());
}

void add_losses(Rows& rows) {
  const std::vector<std::string> logits{"f32[n,256] -4 4", "index[n] 0 256"};
  const std::vector<std::string> numbers{"f32[n,256] 0.05 0.95", "f32[n,256] 0.05 0.95"};
  const Rows added = {
      {"sparse_categorical_crossentropy", logits, rows_of_256,
       [](C x) { return sparse_categorical_crossentropy(x[1], x[0], from_logits); },
       "F.cross_entropy(a, b, reduction='none')", "-jnp.take_along_axis(nn.log_softmax(a), b[:, None], 1)[:, 0]"},
      {"categorical_crossentropy",
       {"f32[n,256] -4 4", "f32[n,256] 0 0.01"},
       rows_of_256,
       [](C x) { return categorical_crossentropy(x[1], x[0], from_logits); },
       "F.cross_entropy(a, b, reduction='none')",
       "-(b * nn.log_softmax(a)).sum(-1)",
       1},
      {"binary_crossentropy",
       {"f32[n,256] -4 4", "f32[n,256] 0 1"},
       rows_of_256,
       [](C x) { return binary_crossentropy(x[1], x[0], from_logits); },
       "F.binary_cross_entropy_with_logits(a, b, reduction='none').mean(-1)",
       "(nn.softplus(a) - a * b).mean(-1)",
       1},
      {"mean_squared_error", numbers, rows_of_256, [](C x) { return mean_squared_error(x[1], x[0]); },
       "F.mse_loss(a, b, reduction='none').mean(-1)", "((a - b) ** 2).mean(-1)", 1},
      {"mean_absolute_error", numbers, rows_of_256, [](C x) { return mean_absolute_error(x[1], x[0]); },
       "F.l1_loss(a, b, reduction='none').mean(-1)", "jnp.abs(a - b).mean(-1)", 1},
      {"huber", numbers, rows_of_256, [](C x) { return huber(x[1], x[0], {.delta = 0.3}); },
       "F.huber_loss(a, b, reduction='none', delta=0.3).mean(-1)", "", 1},
      {"kl_divergence", numbers, rows_of_256, [](C x) { return kl_divergence(x[1], x[0]); },
       "F.kl_div(torch.log(a), b, reduction='none').sum(-1)", "(b * jnp.log(b / a)).sum(-1)", 1},
      {"cosine_similarity", numbers, rows_of_256, [](C x) { return cosine_similarity(x[1], x[0]); },
       "-F.cosine_similarity(a, b)", "", 1},
      {"poisson", numbers, rows_of_256, [](C x) { return poisson(x[1], x[0]); },
       "F.poisson_nll_loss(a, b, log_input=False, eps=1e-7, reduction='none').mean(-1)",
       "(a - b * jnp.log(a + 1e-7)).mean(-1)", 1},
      {"ctc",
       {"f32[n,64,32] -4 4", "index[n,12] 1 32"},
       {1, 16, 128},
       [](C x) { return ctc(x[1], x[0]); },
       "F.ctc_loss(F.log_softmax(a, -1).transpose(0, 1), b, torch.full((n,), 64), torch.full((n,), 12), "
       "reduction='none')",
       "",
       1},
  };
  rows.insert(rows.end(), added.begin(), added.end());
}

/// A layer whose variables, in their order, are the inputs behind the first one. It is differentiated by the first.
template <class Layer>
Row of_layer(const char* name, const Layer& layer, std::vector<std::string> inputs, Extents extents, const char* torch,
             const char* jax, int gradients = 1) {
  struct State {
    Layer layer;
    bool is_ready = false;
  };
  const auto state = std::make_shared<State>(State{layer});
  const auto ours = [state](C x) -> Results {
    if (!state->is_ready) {  // the first call is op by op
      state->layer(x[0]);
      const Variables variables = state->layer.variables();
      for (std::size_t i = 0; i < variables.size() && i + 1 < x.inputs.size(); ++i) variables[i].assign(x[i + 1]);
      state->is_ready = true;
    }
    return state->layer(x[0], training);
  };
  return {name, std::move(inputs), extents, ours, torch, jax, gradients};
}

void add_modules(Rows& rows) {
  const Rows added = {
      of_layer("Dense", Dense(256, relu), {"f32[n,256]", "f32[256,256]", "f32[256]"}, rows_of_256,
               "F.relu(F.linear(a, b.t(), c))", "nn.relu(a @ b + c)"),
      of_layer(
          "Conv2D", Conv2D(32, 3, {.padding = Padding::same, .activation = relu}),
          {"f32[n,32,32,16]", "f32[3,3,16,32]", "f32[32]"}, {1, 4, 32},
          "F.relu(F.conv2d(a.permute(0, 3, 1, 2), b.permute(3, 2, 0, 1), c, padding=1)).permute(0, 2, 3, 1)",
          "nn.relu(lax.conv_general_dilated(a, b, (1, 1), 'SAME', dimension_numbers=('NHWC', 'HWIO', 'NHWC')) + c)"),
      of_layer("LayerNormalization", LayerNormalization(), {"f32[n,256]", "f32[256]", "f32[256]"}, rows_of_256,
               "F.layer_norm(a, (256,), b, c, 1e-3)",
               "(a - a.mean(-1, keepdims=True)) * lax.rsqrt(a.var(-1, keepdims=True) + 1e-3) * b + c"),
      of_layer("LSTM", LSTM(64), {"f32[32,n,32]", "f32[32,256]", "f32[64,256]", "f32[256]"}, {4, 32, 128},
               "torch.lstm(a, (torch.zeros(1, 32, 64), torch.zeros(1, 32, 64)), [b.t().contiguous(), "
               "c.t().contiguous(), d, torch.zeros_like(d)], True, 1, 0.0, False, False, True)[1][0]",
               "lstm_of(a, b, c, d)"),
      of_layer("Embedding", Embedding(5000, 64), {"index[n] 0 5000", "f32[5000,64]"}, {64, 4096, 400'000},
               "F.embedding(a, b)", "jnp.take(b, a, 0)", no_gradient),
      {"Dropout",
       {"f32[n,256]"},
       rows_of_256,
       [layer = Dropout(0.3)](C x) { return layer(x[0], training); },
       "F.dropout(a, 0.3)",
       "jnp.where(jax.random.bernoulli(jax.random.key(0), 0.7, a.shape), a / 0.7, 0)",
       by_all,
       true},
  };
  rows.insert(rows.end(), added.begin(), added.end());
}

}  // namespace

void add_layers(Rows& rows) {
  add_normalizations(rows);
  add_losses(rows);
  add_modules(rows);
}

}  // namespace gradus::bench
