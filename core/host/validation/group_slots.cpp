// The functions of a plugin that carries out collectives (ltc/collective.h).
#include "core/host/validation/call.h"
#include "core/host/validation/slots.h"

namespace ltc::host::validation {
namespace {

ltc_status* LTC_CALL group_create(ltc_device* handle, const ltc_group_args* args, ltc_group** group) {
  Call call("group_create");
  const Use<Device> device = call.use<Device>(handle);
  if (!call.is_possible() || !call.sized(args, LTC_SIZE_TO(ltc_group_args, store)) || !call.not_null(args->store, "store") ||
      !call.not_null(group, "group"))
    return call.refusal();
  call.sends(args->ext);
  call.require(args->rank < args->size && args->size >= 2, "group_create.rank", args->rank, " of ", args->size);
  auto* made = Call::unwritten<ltc_group>();
  ltc_status* const status = call.ask(code_bits(LTC_RESOURCE_EXHAUSTED, LTC_TIMEOUT), 0, [&] {
    return call.instance().plugin_collectives.group_create(device.real(), args, &made);
  });
  return call.give<Group>(status, made, group, [&] { return new Group(Kind::kGroup, call.instance(), device.get(), made); });
}

void LTC_CALL group_abort(ltc_group* handle) {
  Call call("group_abort");
  const Use<Group> group = call.use<Group>(handle);
  if (call.is_possible()) call.tell([&] { call.instance().plugin_collectives.group_abort(group.real()); });
}

void LTC_CALL group_destroy(ltc_group* handle) {
  Call call("group_destroy");
  Group* const group = call.end<Group>(handle);
  if (!group) return;
  auto* const real = static_cast<ltc_group*>(group->real);
  call.instance().forget(group);
  call.tell([&] { call.instance().plugin_collectives.group_destroy(real); });
}

}  // namespace

void set_group_functions(Instance& instance) {
  instance.collectives = instance.plugin_collectives;
  instance.collectives.group_create = group_create;
  instance.collectives.group_abort = group_abort;
  instance.collectives.group_destroy = group_destroy;
}

}  // namespace ltc::host::validation
