#include "gradus/backend/xla/device_buffer.h"
#include "gradus/backend/replicated_value.h"
#include "gradus/backend/xla/counts.h"
#include "gradus/tensor/out_of_memory.h"

namespace gradus::xla {
namespace {

Spec without_device(const Spec& spec) { return {spec.dtype, spec.shape}; }

struct Kept {
  Ref<Buffer> host;
};

}  // namespace

void throw_for(std::exception_ptr problem, PluginDevice& on, std::int64_t bytes, const std::string& what) {
  try {
    std::rethrow_exception(problem);
  } catch (const pjrt::Refused& refused) {
    if (refused.code() == pjrt::Code::resource_exhausted) on.account.fail(bytes, what, refused.what());
    throw Unavailable(text("device ", on.device, ": ", what, ": ", refused.what()));
  }
}

std::exception_ptr lost_value(const std::string& where, const Spec& spec, const std::string& why) {
  return std::make_exception_ptr(
      Unavailable(text("device ", where, " has lost ", without_device(spec),
                       ": the program that was to compute it there has failed: ", why, "; load a checkpoint")));
}

Holding::Holding(PluginDevice& on, std::shared_ptr<pjrt::BufferOwner> buffer, const Spec& spec, const char* origin)
    : on_(on),
      buffer_(std::move(buffer)),
      spec_(without_device(spec)),
      holder_{bytes_of(spec_), bytes_of(spec_) >= memory::labelled_bytes ? text(origin, ' ', spec_) : ""} {
  on_.account.add(holder_);
}

Ref<Buffer> DeviceBuffer::from_host(PluginDevice& on, const Ref<Buffer>& host, const Spec& spec) {
  const std::int64_t bytes = bytes_of(spec);
  internal_check(host->bytes() >= bytes, "a buffer of ", host->bytes(), " bytes is brought to ", on.device, " as ",
                 spec);
  const auto what = [&] { return text("tensor ", without_device(spec)); };
  on.account.require_room(bytes, "tensor");
  pjrt::EventOwner done;
  std::shared_ptr<pjrt::BufferOwner> there;
  try {
    there = on.session.upload(on.handle, spec, host->data(), done);
  } catch (const pjrt::Refused&) { throw_for(std::current_exception(), on, bytes, what()); }
  ++counts().uploads;
  std::move(done).keep(std::make_shared<Kept>(Kept{host}));
  auto holding = std::make_shared<Holding>(on, std::move(there), spec, "tensor");
  return Buffer::of_device(std::make_shared<DeviceBuffer>(std::move(holding), host, 0), bytes);
}

Ref<Buffer> DeviceBuffer::of(std::shared_ptr<const Holding> holding, std::int64_t number) {
  const std::int64_t bytes = bytes_of(holding->spec());
  return Buffer::of_device(std::make_shared<DeviceBuffer>(std::move(holding), nullptr, number), bytes);
}

Ref<Buffer> brought_to(PluginDevice& on, const Ref<Buffer>& value, const Spec& spec) {
  DeviceMemory* const memory = value->device_memory();
  if (const ReplicatedValue* const all = memory ? ReplicatedValue::of(*value) : nullptr)
    return brought_to(on, all->copy_on(on.device) ? all->copy_on(on.device) : all->copies().front(), spec);
  auto* const from = memory ? dynamic_cast<DeviceBuffer*>(memory) : nullptr;
  if (from && &from->on() == &on) [[likely]]
    return value;
  if (!from || &from->on().session != &on.session) return DeviceBuffer::from_host(on, Buffer::on_host(value), spec);
  from->on().faults.observe();  // which the other device would not hear of
  const std::shared_ptr<const Holding> holding = from->holding(spec);
  on.account.require_room(bytes_of(spec), "a copy from another device");
  try {
    auto copy = holding->buffer().copy_to(on.handle);
    return DeviceBuffer::of(std::make_shared<Holding>(on, std::move(copy), spec, "copy from another device"), 0);
  } catch (const pjrt::Refused&) {
    throw_for(std::current_exception(), on, bytes_of(spec), "a copy from another device");
  }
}

bool DeviceBuffer::is(const Ref<Buffer>& buffer) {
  return dynamic_cast<const DeviceBuffer*>(buffer->device_memory()) != nullptr;
}

DeviceBuffer& DeviceBuffer::in(const Ref<Buffer>& buffer) {
  auto* const memory = dynamic_cast<DeviceBuffer*>(buffer->device_memory());
  internal_check(memory != nullptr, "a buffer of the host, or of another kind of device, was handed to a plugin");
  return *memory;
}

std::int64_t DeviceBuffer::number() const {
  const std::lock_guard lock(guard_);
  return number_;
}
Ref<Buffer> DeviceBuffer::mirror() const {
  const std::lock_guard lock(guard_);
  return lost_ ? nullptr : mirror_;
}
void DeviceBuffer::replace(std::shared_ptr<const Holding> holding, std::int64_t number) {
  std::shared_ptr<const Holding> before;  // dies after the lock
  Ref<Buffer> shown;
  const std::lock_guard lock(guard_);
  before = std::exchange(holding_, std::move(holding));
  shown = std::exchange(mirror_, nullptr);
  number_ = number;
}
void DeviceBuffer::take(const DeviceBuffer& other) {
  replace(other.holding_, 0);
  const std::lock_guard lock(guard_);
  mirror_ = other.mirror_;
}
void DeviceBuffer::lose(std::exception_ptr problem) {
  const std::lock_guard lock(guard_);
  lost_ = std::move(problem);
}

std::shared_ptr<const Holding> DeviceBuffer::valid() const {
  std::int64_t number = 0;
  std::shared_ptr<const Holding> now;
  {
    const std::lock_guard lock(guard_);
    if (lost_) std::rethrow_exception(lost_);
    number = number_;
    now = holding_;
  }
  if (const std::exception_ptr problem = on_.faults.failure_of(number)) std::rethrow_exception(problem);
  return now;
}

std::shared_ptr<const Holding> DeviceBuffer::holding(const Spec& spec) {
  std::shared_ptr<const Holding> now = valid();
  const Spec wanted = without_device(spec);
  if (now->spec() == wanted) [[likely]]
    return now;
  // The same bytes under another shape.
  host();
  const Ref<Buffer> again = from_host(on_, mirror(), wanted);
  return in(again).valid();
}

void DeviceBuffer::refuse(const std::shared_ptr<const Holding>& now, const std::string& what) const {
  const std::exception_ptr problem = std::current_exception();
  on_.faults.forget();
  try {
    std::rethrow_exception(problem);
  } catch (const pjrt::Refused& refused) {
    if (now->buffer().has_failed()) {
      const std::exception_ptr lost = lost_value(text(on_.device), now->spec(), refused.what());
      {
        const std::lock_guard lock(guard_);
        if (holding_ == now) lost_ = lost;  // else it has been overwritten meanwhile
      }
      if (refused.code() != pjrt::Code::resource_exhausted) std::rethrow_exception(lost);
    }
  }
  throw_for(problem, on_, bytes_of(now->spec()), what);
}

void DeviceBuffer::wait() const {
  const std::shared_ptr<const Holding> now = valid();
  try {
    ++counts().waits;
    now->buffer().ready().wait();
  } catch (const pjrt::Refused&) { refuse(now, "a program"); }
  on_.faults.observe();
  valid();
}

const void* DeviceBuffer::host() {
  for (;;) {
    const std::shared_ptr<const Holding> now = valid();
    if (const Ref<Buffer> known = mirror()) return known->data();
    const std::int64_t bytes = bytes_of(now->spec());
    const Ref<Buffer> copy = Buffer::allocate(bytes, "copy of a device's tensor");
    on_.faults.begin_to_observe();
    pjrt::EventOwner copied;
    try {
      if (bytes > 0) {
        copied = now->buffer().read(now->spec(), copy->data(), static_cast<std::size_t>(bytes));
        ++counts().waits;
        copied.wait();
      }
    } catch (const pjrt::Refused&) {
      std::move(copied).keep(std::make_shared<Ref<Buffer>>(copy));  // the device may still write
      refuse(now, "a tensor");
    }
    on_.faults.observe();
    valid();
    const std::lock_guard lock(guard_);
    if (holding_ != now) continue;  // overwritten meanwhile
    if (!mirror_) mirror_ = copy;
    return mirror_->data();
  }
}

}  // namespace gradus::xla
