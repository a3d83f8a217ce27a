#include "tests/xla/on_plugin.h"
#include "gradus/backend/backend.h"
#include "gradus/backend/xla/xla_executable.h"
#include "gradus/tensor/buffer.h"

namespace gradus::testing_plugin {

Tensors computed_there(const Graph& graph, const Tensors& inputs, const Device& device) {
  const xla::XlaExecutable program(graph, {}, device.kind);
  Backend& backend = backend_of(device);
  std::vector<Ref<Buffer>> in, out(graph.outputs.size());
  for (const Tensor& x : inputs) {
    Ref<Buffer> host = Buffer::allocate(bytes_of(x.spec()));
    if (bytes_of(x.spec()) > 0) std::memcpy(host->data(), x.host(), static_cast<std::size_t>(bytes_of(x.spec())));
    in.push_back(backend.from_host(device, std::move(host), {x.dtype(), x.shape()}));
  }
  program.run(in, out, {.device = device});
  program.wait(out);
  Tensors results;
  for (std::size_t k = 0; k < out.size(); ++k) {
    const Spec& spec = graph[graph.outputs[k]].spec;
    results.push_back(Tensor::of_buffer({spec.dtype, spec.shape}, Buffer::on_host(out[k])));
  }
  return results;
}

}  // namespace gradus::testing_plugin
