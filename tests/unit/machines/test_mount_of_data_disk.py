"""Mount that systemd makes of an encrypted disk's line in fstab: after a reboot the mount waits, for as long as it
takes."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from stockyard.machines import cloud_config, data_disk

GENERATOR = Path("/lib/systemd/system-generators/systemd-fstab-generator")


@pytest.mark.skipif(not GENERATOR.exists(), reason="systemd is not installed here")
def test_the_mount_waits_for_the_unit_that_opens_the_disk(tmp_path: Path) -> None:
    script = cloud_config.start_script("control_plane.sh").text
    options = next(each for each in re.findall(r"options=(\S+)", script) if "_netdev" in each)
    fstab = tmp_path / "fstab"
    fstab.write_text(f"UUID=0fc63daf /var/lib/control-plane ext4 {options} 0 2\n")
    subprocess.run(
        [GENERATOR, tmp_path, tmp_path, tmp_path],
        env={"SYSTEMD_FSTAB": str(fstab), "SYSTEMD_LOG_TARGET": "null"},
        check=True,
        capture_output=True,
    )
    lines = (tmp_path / "var-lib-control\\x2dplane.mount").read_text().splitlines()
    unit = Path(data_disk.UNIT_PATH).name
    assert {f"Requires={unit}", f"After={unit}"} <= set(lines)
    assert [line for line in lines if line.startswith("Before=")] == [], "the boot itself does not wait for it"
    device_settings = "".join(path.read_text() for path in tmp_path.glob("*.device.d/*.conf"))
    assert "JobRunningTimeoutSec=infinity" in device_settings
