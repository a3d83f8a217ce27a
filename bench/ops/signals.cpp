/// Rows of transforms, pools, images and resampling.
#include "bench/ops/row.h"
#include "gradus/ops/elementwise.h"
#include "gradus/ops/grid_sample.h"
#include "gradus/ops/image.h"
#include "gradus/ops/pool.h"
#include "gradus/ops/reduce.h"
#include "gradus/ops/resize.h"
#include "gradus/ops/shape.h"
#include "gradus/ops/signal.h"
#include "gradus/ops/spectral.h"

namespace gradus::bench {
namespace {

using C = const Case&;

void add_transforms(Rows& rows) {
  constexpr Extents signals{1, 16, 1024};
  const Rows added = {
      {"fft",
       {"f32[n,1024,2]"},
       signals,
       [](C x) { return fft(x[0]); },
       "torch.view_as_real(torch.fft.fft(torch.view_as_complex(a)))",
       "pairs(jnp.fft.fft(complex_of(a)))"},
      {"ifft",
       {"f32[n,1024,2]"},
       signals,
       [](C x) { return ifft(x[0]); },
       "torch.view_as_real(torch.fft.ifft(torch.view_as_complex(a)))",
       "pairs(jnp.fft.ifft(complex_of(a)))"},
      {"fft of 1000",
       {"f32[n,1000,2]"},
       signals,
       [](C x) { return fft(x[0]); },
       "torch.view_as_real(torch.fft.fft(torch.view_as_complex(a)))",
       "pairs(jnp.fft.fft(complex_of(a)))"},
      {"rfft",
       {"f32[n,1024]"},
       signals,
       [](C x) { return rfft(x[0]); },
       "torch.view_as_real(torch.fft.rfft(a))",
       "pairs(jnp.fft.rfft(a))"},
      {"irfft",
       {"f32[n,513,2]"},
       signals,
       [](C x) { return irfft(x[0]); },
       "torch.fft.irfft(torch.view_as_complex(a))",
       "jnp.fft.irfft(complex_of(a))",
       no_gradient},
      {"dct", {"f32[n,512]"}, signals, [](C x) { return dct(x[0]); }, "", "jax.scipy.fft.dct(a)"},
      {"stft",
       {"f32[n,4096,1]"},
       {1, 4, 256},
       [](C x) { return stft(x[0], {.frame_step = 128, .frame_length = 512}); },
       "torch.view_as_real(torch.stft(a[..., 0], 512, 128, window=torch.ones(512), center=False, "
       "return_complex=True)).transpose(1, 2)",
       ""},
      {"fftshift",
       {"f32[n,1024]"},
       signals,
       [](C x) { return fftshift(x[0], {1}); },
       "torch.fft.fftshift(a, 1)",
       "jnp.fft.fftshift(a, 1)"},
      {"frame",
       {"f32[n,4096]"},
       {1, 4, 256},
       [](C x) { return frame(x[0], 512, 128); },
       "a.unfold(-1, 512, 128).contiguous()",
       ""},
      {"hann_window",
       {"f32[1]"},
       {64, 4096, 1'000'000},
       [](C x) { return hann_window(x.n); },
       "torch.hann_window(n)",
       "",
       no_gradient},
      {"hamming_window",
       {"f32[1]"},
       {64, 4096, 1'000'000},
       [](C x) { return hamming_window(x.n); },
       "torch.hamming_window(n)",
       "",
       no_gradient},
      {"blackman_window",
       {"f32[1]"},
       {64, 4096, 1'000'000},
       [](C x) { return blackman_window(x.n); },
       "torch.blackman_window(n)",
       "",
       no_gradient},
      {"kaiser_window",
       {"f32[1]"},
       {64, 4096, 1'000'000},
       [](C x) { return kaiser_window(x.n); },
       "torch.kaiser_window(n, periodic=False, beta=12.0)",
       "jnp.kaiser(n, 12.0)",
       no_gradient},
  };
  rows.insert(rows.end(), added.begin(), added.end());
}

void add_pools(Rows& rows) {
  const Rows added = {
      {"max_pool2d",
       {"f32[n,32,32,32]"},
       {1, 4, 64},
       [](C x) { return max_pool2d(x[0], {2, 2}); },
       "F.max_pool2d(a.permute(0, 3, 1, 2), 2).permute(0, 2, 3, 1)",
       "lax.reduce_window(a, -jnp.inf, lax.max, (1, 2, 2, 1), (1, 2, 2, 1), 'VALID')"},
      {"max_pool2d overlapping",
       {"f32[n,33,33,32]"},
       {1, 4, 64},
       [](C x) { return max_pool2d(x[0], {3, 3}, {.strides = {2}}); },
       "F.max_pool2d(a.permute(0, 3, 1, 2), 3, 2).permute(0, 2, 3, 1)",
       "lax.reduce_window(a, -jnp.inf, lax.max, (1, 3, 3, 1), (1, 2, 2, 1), 'VALID')"},
      {"max_pool1d",
       {"f32[n,512,32]"},
       {1, 8, 128},
       [](C x) { return max_pool1d(x[0], {2}); },
       "F.max_pool1d(a.permute(0, 2, 1), 2).permute(0, 2, 1)",
       "lax.reduce_window(a, -jnp.inf, lax.max, (1, 2, 1), (1, 2, 1), 'VALID')"},
      {"avg_pool2d",
       {"f32[n,32,32,32]"},
       {1, 4, 64},
       [](C x) { return avg_pool2d(x[0], {2, 2}); },
       "F.avg_pool2d(a.permute(0, 3, 1, 2), 2).permute(0, 2, 3, 1)",
       "lax.reduce_window(a, 0.0, lax.add, (1, 2, 2, 1), (1, 2, 2, 1), 'VALID') / 4"},
      {"avg_pool3d",
       {"f32[n,8,16,16,16]"},
       {1, 4, 64},
       [](C x) { return avg_pool3d(x[0], {2, 2, 2}); },
       "F.avg_pool3d(a.permute(0, 4, 1, 2, 3), 2).permute(0, 2, 3, 4, 1)",
       "lax.reduce_window(a, 0.0, lax.add, (1, 2, 2, 2, 1), (1, 2, 2, 2, 1), 'VALID') / 8"},
      {"lp_pool",
       {"f32[n,32,32,32] 0.1 1"},
       {1, 4, 64},
       [](C x) { return lp_pool(x[0], {2, 2}); },
       "F.lp_pool2d(a.permute(0, 3, 1, 2), 2.0, 2).permute(0, 2, 3, 1)",
       ""},
      {"global_avg_pool",
       {"f32[n,16,16,64]"},
       {1, 8, 128},
       [](C x) { return global_avg_pool(x[0]); },
       "a.mean((1, 2), keepdim=True)",
       "jnp.mean(a, (1, 2), keepdims=True)"},
      {"global_max_pool",
       {"f32[n,16,16,64]"},
       {1, 8, 128},
       [](C x) { return global_max_pool(x[0]); },
       "a.amax((1, 2), keepdim=True)",
       "jnp.max(a, (1, 2), keepdims=True)"},
      {"adaptive_avg_pool",
       {"f32[n,33,33,32]"},
       {1, 4, 64},
       [](C x) { return adaptive_avg_pool(x[0], {7, 7}); },
       "F.adaptive_avg_pool2d(a.permute(0, 3, 1, 2), 7).permute(0, 2, 3, 1)",
       ""},
      {"adaptive_max_pool",
       {"f32[n,33,33,32]"},
       {1, 4, 64},
       [](C x) { return adaptive_max_pool(x[0], {7, 7}); },
       "F.adaptive_max_pool2d(a.permute(0, 3, 1, 2), 7).permute(0, 2, 3, 1)",
       ""},
      {"extract_patches",
       {"f32[n,32,32,8]"},
       {1, 4, 64},
       [](C x) { return extract_patches(x[0], {3, 3}); },
       "F.unfold(a.permute(0, 3, 1, 2), 3).transpose(1, 2).contiguous()",
       "lax.conv_general_dilated_patches(a, (3, 3), (1, 1), 'VALID', dimension_numbers=('NHWC', 'HWIO', 'NHWC'))",
       no_gradient},
  };
  rows.insert(rows.end(), added.begin(), added.end());
}

void add_images(Rows& rows) {
  const Rows added = {
      {"resize",
       {"f32[n,48,48,3]"},
       images,
       [](C x) { return resize(x[0], {96, 96}); },
       "F.interpolate(a.permute(0, 3, 1, 2), (96, 96), mode='bilinear').permute(0, 2, 3, 1)",
       "jax.image.resize(a, (n, 96, 96, 3), 'linear')"},
      {"resize to smaller",
       {"f32[n,96,96,3]"},
       images,
       [](C x) { return resize(x[0], {40, 40}); },
       "F.interpolate(a.permute(0, 3, 1, 2), (40, 40), mode='bilinear').permute(0, 2, 3, 1)",
       "jax.image.resize(a, (n, 40, 40, 3), 'linear', antialias=False)"},
      {"resize nearest",
       {"f32[n,48,48,3]"},
       images,
       [](C x) { return resize(x[0], {96, 96}, {.method = ResizeMethod::nearest}); },
       "F.interpolate(a.permute(0, 3, 1, 2), (96, 96), mode='nearest').permute(0, 2, 3, 1)",
       "jax.image.resize(a, (n, 96, 96, 3), 'nearest')"},
      {"grid_sample",
       {"f32[n,8,32,32]", "f32[n,32,32,2] -0.95 0.95"},
       {1, 8, 128},
       [](C x) { return grid_sample(x[0], x[1]); },
       "F.grid_sample(a, b, align_corners=False)",
       ""},
      {"affine_grid",
       {"f32[n,2,3]"},
       {1, 8, 512},
       [](C x) { return affine_grid(x[0], {32, 32}); },
       "F.affine_grid(a, (n, 1, 32, 32), align_corners=False)",
       ""},
      {"rgb_to_grayscale",
       {"f32[n,64,64,3] 0 1"},
       images,
       [](C x) { return rgb_to_grayscale(x[0]); },
       "(a * torch.tensor([0.2989, 0.587, 0.114])).sum(-1, keepdim=True)",
       "jnp.sum(a * jnp.array([0.2989, 0.587, 0.114]), -1, keepdims=True)"},
      {"adjust_contrast",
       {"f32[n,64,64,3] 0 1"},
       images,
       [](C x) { return adjust_contrast(x[0], 1.5); },
       "(a - a.mean((1, 2), keepdim=True)) * 1.5 + a.mean((1, 2), keepdim=True)",
       "(a - a.mean((1, 2), keepdims=True)) * 1.5 + a.mean((1, 2), keepdims=True)"},
  };
  rows.insert(rows.end(), added.begin(), added.end());
}

}  // namespace

void add_signals(Rows& rows) {
  add_transforms(rows);
  add_pools(rows);
  add_images(rows);
}

}  // namespace gradus::bench
