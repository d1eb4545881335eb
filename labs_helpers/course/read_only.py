"""Make JupyterLab show the whole course, so that links to its sources work, but write only in the student's folder."""

from __future__ import annotations

import posixpath
from typing import Any

from jupyter_server.services.contents.largefilemanager import AsyncLargeFileManager
from tornado.web import HTTPError
from traitlets import Unicode

NOT_SHOWN = {"build", "grades", "tests"}  # of the course; hidden folders are not shown either


class OwnFolderOnly(AsyncLargeFileManager):
    """Jupyter's contents manager, which changes only files in the folder `own`, even for root."""

    own = Unicode("my_labs", config=True, help="the student's folder, from the root")

    def _is_inside(self, path: str) -> bool:
        return posixpath.normpath(path.strip("/")).startswith(f"{self.own}/")

    def _refuse_outside(self, *paths: str) -> None:
        for path in paths:
            if not self._is_inside(path):
                what = f"{path.strip('/') or 'this folder'} is part of the course and read-only."
                raise HTTPError(403, f"{what} You can change files in {self.own}/.")

    def is_writable(self, path: str) -> bool:
        """Tell whether JupyterLab may save the file, or create files in the folder."""
        return self._is_inside(f"{path.strip('/')}/x") and super().is_writable(path)

    async def get(self, path: str, *arguments: Any, **named: Any) -> dict[str, Any]:
        model = await super().get(path, *arguments, **named)
        if not path.strip("/") and model["content"]:
            model["content"] = [one for one in model["content"] if one["name"] not in NOT_SHOWN]
        return model

    async def new(self, model: dict[str, Any] | None = None, path: str = "") -> dict[str, Any]:
        self._refuse_outside(path)
        return await super().new(model, path)

    async def save(self, model: dict[str, Any], path: str = "") -> dict[str, Any]:
        self._refuse_outside(path)
        return await super().save(model, path)

    async def delete_file(self, path: str) -> None:
        self._refuse_outside(path)
        await super().delete_file(path)

    async def rename_file(self, old_path: str, new_path: str) -> None:
        self._refuse_outside(old_path, new_path)
        await super().rename_file(old_path, new_path)

    async def copy(self, from_path: str, to_path: str | None = None) -> dict[str, Any]:
        """Copy a file; the copy of a read-only file goes into the student's folder."""
        if not self._is_inside(f"{to_path or posixpath.dirname(from_path)}/x"):
            to_path = self.own
        return await super().copy(from_path, to_path)

    async def create_checkpoint(self, path: str) -> dict[str, Any]:
        self._refuse_outside(path)
        return await super().create_checkpoint(path)

    async def restore_checkpoint(self, checkpoint_id: str, path: str) -> None:
        self._refuse_outside(path)
        await super().restore_checkpoint(checkpoint_id, path)
